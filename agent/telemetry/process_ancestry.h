// Whether a process belongs to the tree of this agent, by /proc/PID/stat.
#ifndef ASSAY_AGENT_TELEMETRY_PROCESS_ANCESTRY_H_
#define ASSAY_AGENT_TELEMETRY_PROCESS_ANCESTRY_H_

#include <cstdint>
#include <string>

namespace assay {

enum class Ancestry {
  kOurs,  // `ancestor` itself or a descendant
  kForeign,
  kUnseen,  // no such process here: it ended, or its number is another namespace's
};

Ancestry AncestryOf(const std::string& proc_root, int64_t pid, int64_t ancestor);

}  // namespace assay

#endif  // ASSAY_AGENT_TELEMETRY_PROCESS_ANCESTRY_H_
