// Times of the process's own start, by CLOCK_BOOTTIME of this machine.
#ifndef ASSAY_RUNNERS_COMMON_PROCESS_START_H_
#define ASSAY_RUNNERS_COMMON_PROCESS_START_H_

#include <cstdint>
#include <optional>

namespace assay {

int64_t BootNowNanoseconds();

// The field process_start_seconds: from the agent's spawn to `main_at_boot_ns`, which main takes
// first. Not known (nullopt) by hand, where spawned_at is 0, and where it lies after main or over a
// day before: clocks of two boots.
std::optional<double> ProcessStartSeconds(int64_t spawned_at_boot_ns, int64_t main_at_boot_ns);

}  // namespace assay

#endif  // ASSAY_RUNNERS_COMMON_PROCESS_START_H_
