// FreeMemory: how much memory of the machine a process may still take, for `batch: max` on a CPU.
#ifndef ASSAY_RUNNERS_COMMON_FREE_MEMORY_H_
#define ASSAY_RUNNERS_COMMON_FREE_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>

namespace assay {

// The least of MemAvailable and of what the process's control group (version 2) and those above it
// leave; nullopt where neither can be read. /proc and /sys are found below `root` (tests; "" is the
// machine).
std::optional<int64_t> FreeMemoryBytes(const std::string& root);

// Lowers this process's limit on its data segment, which its children inherit, to nine tenths of
// that, so that running out of memory is an error of one process and not of the machine. Never
// raises it.
void LimitMemoryToWhatIsFree();

}  // namespace assay

#endif  // ASSAY_RUNNERS_COMMON_FREE_MEMORY_H_
