// RunBounded: runs a program to its end, or to a deadline, and returns what it printed.
//
// For questions that are asked rarely and outside the event loop (--stack-info). Blocks the caller
// for at most `deadline` and the time a SIGKILL takes. Thread rule: as SpawnSessionLeader, one
// long-lived thread.
#ifndef ASSAY_AGENT_INVENTORY_BOUNDED_COMMAND_H_
#define ASSAY_AGENT_INVENTORY_BOUNDED_COMMAND_H_

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

struct CommandOutput {
  int exit_code = -1;  // -1 where a signal ended it
  int signal = 0;
  std::string output;  // standard output, at most 1 MiB
  std::string errors;  // the last 4 KiB of standard error
};

// The error of starting it, or DeadlineExceeded; the program's whole group is killed then.
absl::StatusOr<CommandOutput> RunBounded(const std::string& program,
                                         const std::vector<std::string>& arguments,
                                         const std::map<std::string, std::string>& environment,
                                         std::chrono::milliseconds deadline);

}  // namespace assay

#endif  // ASSAY_AGENT_INVENTORY_BOUNDED_COMMAND_H_
