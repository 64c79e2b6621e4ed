// CheckRunner: `assay-agent --doctor-runner`: does a program keep the protocol of runners
// (docs/runner-protocol.md)? Starts it a score of times with small cells, good and bad, and says
// what conforms and what to change.
//
// Thread rule: one long-lived thread; blocks.
#ifndef ASSAY_AGENT_CONFORMANCE_CHECK_RUNNER_H_
#define ASSAY_AGENT_CONFORMANCE_CHECK_RUNNER_H_

#include <chrono>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "agent/telemetry/nvml.h"
#include "common/doctor/doctor_report.h"

namespace assay {

struct ConformanceOptions {
  std::string runner;  // a program, or the manifest of a stack (*.json), whose environment it gets
  std::chrono::seconds cell_limit{120};  // for one small cell, with loading and setting up
  std::string version;
  std::string lock_dir;                            // of GPUs (device_lock.h)
  std::map<std::string, std::string> environment;  // this process's; a runner gets its allowed part
};

// The report's node is the program. Cells run on the processor where the stack can, else on the
// first free GPU of `nvml`, which may be null. InvalidArgument where there is no such program or
// its manifest is wrong; ResourceExhausted where every GPU is in use. SIGPIPE must be ignored.
absl::StatusOr<DoctorReport> CheckRunner(const ConformanceOptions& options, Nvml* nvml);

}  // namespace assay

#endif  // ASSAY_AGENT_CONFORMANCE_CHECK_RUNNER_H_
