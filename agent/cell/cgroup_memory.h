// Whether the kernel's out-of-memory killer struck in our cgroup.
#ifndef ASSAY_AGENT_CELL_CGROUP_MEMORY_H_
#define ASSAY_AGENT_CELL_CGROUP_MEMORY_H_

#include <cstdint>
#include <string>

namespace assay {

// `oom_kill` of the cgroup's memory.events (cgroup v2), 0 where there is none. Compare two
// readings.
uint64_t OomKillCount(const std::string& proc = "/proc", const std::string& sys = "/sys");

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_CGROUP_MEMORY_H_
