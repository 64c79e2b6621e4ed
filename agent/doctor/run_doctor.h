// RunDoctor: `assay-agent --doctor`: gathers, judges and writes the report. `--doctor-runner`
// writes its own in the same way.
//
// Thread rule: the main thread.
#ifndef ASSAY_AGENT_DOCTOR_RUN_DOCTOR_H_
#define ASSAY_AGENT_DOCTOR_RUN_DOCTOR_H_

#include "absl/status/statusor.h"
#include "agent/doctor/gather.h"
#include "agent/telemetry/nvml.h"
#include "common/doctor/doctor_report.h"

namespace assay {

inline constexpr int kExitBadNode = 1;

// Writes `report` as JSON to `fd`; 0, or kExitBadNode where something is bad. The error of the
// writing.
absl::StatusOr<int> WriteDoctorReport(const DoctorReport& report, int fd);

// Writes the report as JSON to `fd`; 0, or kExitBadNode where something is bad. The error of the
// writing. `nvml` as GatherFacts.
absl::StatusOr<int> RunDoctor(const GatherOptions& options, Nvml* nvml, int fd);

}  // namespace assay

#endif  // ASSAY_AGENT_DOCTOR_RUN_DOCTOR_H_
