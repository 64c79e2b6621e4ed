#include "runners/common/process_start.h"

#include <ctime>

namespace assay {

int64_t BootNowNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::optional<double> ProcessStartSeconds(int64_t spawned_at_boot_ns, int64_t main_at_boot_ns) {
  constexpr int64_t kDay = int64_t{86'400} * 1'000'000'000;
  if (spawned_at_boot_ns <= 0 || main_at_boot_ns < spawned_at_boot_ns) return std::nullopt;
  const int64_t took = main_at_boot_ns - spawned_at_boot_ns;
  if (took > kDay) return std::nullopt;
  return static_cast<double>(took) / 1e9;
}

}  // namespace assay
