// DoctorReport: what works on a node, what does not, and what to type. Made by agent/doctor; the
// coordinator hands it on, the command line prints it.
//
// As JSON (docs/doctor.md):
//   {"node": "n1", "version": "0.1.0", "worst": "warning",
//    "checks": [{"name": "persistence", "state": "warning", "finding": "...", "remedy": "..."}]}
//
// Texts are valid UTF-8, but a peer's or a file's: Printable() before a terminal sees them.
// Thread rule: plain values, any thread.
#ifndef ASSAY_COMMON_DOCTOR_DOCTOR_REPORT_H_
#define ASSAY_COMMON_DOCTOR_DOCTOR_REPORT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

// From good to bad; kUnknown is what could not be found out, and says nothing against the node.
enum class CheckState { kOk, kUnknown, kWarning, kBad };

std::string_view CheckStateName(CheckState state);  // ok, unknown, warning, bad
std::optional<CheckState> CheckStateFromName(std::string_view name);

struct DoctorCheck {
  std::string name;  // of a fixed list, with a stack's or a card's name behind it
  CheckState state = CheckState::kOk;
  std::string finding;  // one sentence with the figures
  std::string remedy;   // what to type; empty where nothing helps or nothing is wrong
};

struct DoctorReport {
  std::string node;
  std::string version;
  std::vector<DoctorCheck> checks;

  // kOk where there is none.
  CheckState Worst() const;
};

// More of them, or longer ones, are no report of ours.
inline constexpr size_t kMostDoctorChecks = 512;
inline constexpr size_t kMostDoctorTextBytes = 4096;

std::string WriteDoctorJson(const DoctorReport& report);

// InvalidArgument with one sentence. A state that this version does not know is kUnknown; unknown
// keys are passed over; texts are cut and scrubbed to UTF-8.
absl::StatusOr<DoctorReport> ParseDoctorJson(std::string_view json);

}  // namespace assay

#endif  // ASSAY_COMMON_DOCTOR_DOCTOR_REPORT_H_
