// Exclusivity: whether nobody else used the devices of an attempt, from what could be seen.
//
// verified: NVML's process list was readable every time, empty before the attempt and holding only
//   our process tree in the window, and less than kIdleBaselineBytes were in use before.
// inferred: less than the baseline in use before and no foreign process seen, but the list was not
//   readable or named processes that this /proc does not show (a container).
// unknown: the rest, and where somebody else was seen, or more processes than our one rank that
//   this /proc does not show.
// Pure. Thread rule: one owner.
#ifndef ASSAY_AGENT_TELEMETRY_EXCLUSIVITY_H_
#define ASSAY_AGENT_TELEMETRY_EXCLUSIVITY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/telemetry/process_ancestry.h"

namespace assay {

// Less than any CUDA context takes (some 250 MiB from Volta on), more than an idle driver.
inline constexpr uint64_t kIdleBaselineBytes = uint64_t{200} << 20;

class Exclusivity {
 public:
  // Before the attempt, once a device.
  void Before(const std::optional<uint64_t>& used_bytes,
              const absl::StatusOr<std::vector<int64_t>>& pids);
  // In the window.
  void During(const absl::StatusOr<std::vector<int64_t>>& pids,
              const std::function<Ancestry(int64_t)>& ancestry);
  std::string_view Word() const;
  // Processes of others, by number; nullopt where no list could be read.
  const std::optional<std::set<int64_t>>& foreign() const { return foreign_pids_; }

 private:
  bool idle_before_ = true;
  bool seen_before_ = false;
  bool listed_ = true;
  bool checked_in_window_ = false;
  bool foreign_ = false;
  std::optional<std::set<int64_t>> foreign_pids_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_TELEMETRY_EXCLUSIVITY_H_
