// The fork and exec of ChildProcess, apart from what is done with the child afterwards.
#ifndef ASSAY_AGENT_PROCESS_SPAWN_H_
#define ASSAY_AGENT_PROCESS_SPAWN_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

// Forks and executes `program` as leader of a new session with exactly `descriptors` open: entry i
// becomes descriptor i, -1 leaves it closed. Dies with the calling thread; signals are at their
// defaults; no core dump; first to go when the machine runs out of memory. Thread rule: one
// long-lived thread. With `cpus` it may run on those processors alone, if the kernel takes them.
// The error is execve's, with the program's name.
absl::StatusOr<pid_t> SpawnSessionLeader(const std::string& program,
                                         const std::vector<std::string>& arguments,
                                         const std::map<std::string, std::string>& environment,
                                         const std::vector<int>& descriptors,
                                         const std::vector<int>& cpus = {});

}  // namespace assay

#endif  // ASSAY_AGENT_PROCESS_SPAWN_H_
