// FailureText: what a runner's dying words mean. Frameworks and drivers print the cause and then
// end with a code that says nothing; people should read the cause.
//
// Thread rule: pure, any thread.
#ifndef ASSAY_AGENT_CELL_FAILURE_TEXT_H_
#define ASSAY_AGENT_CELL_FAILURE_TEXT_H_

#include <optional>
#include <string>
#include <string_view>

#include "common/results/outcome.h"

namespace assay {

struct Diagnosis {
  Outcome outcome = Outcome::kFail;
  std::string_view reason;
  std::string message;  // what was said, cut to one line, and what to do
};

// The first known cause in `log_tail`, or nothing. Without regard to case.
std::optional<Diagnosis> DiagnoseText(std::string_view log_tail);

// For a process that wrote no result record. `oom_kills`: the kernel's out-of-memory killer struck
// in our cgroup while it ran; `device_is_cpu`: then the host's memory is the device's.
Diagnosis DiagnoseExit(int exit_code, int signal, std::string_view log_tail, bool oom_killed,
                       bool device_is_cpu);

// "SIGKILL" or "signal 64".
std::string SignalName(int signal);

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_FAILURE_TEXT_H_
