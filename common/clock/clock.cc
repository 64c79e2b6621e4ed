#include "common/clock/clock.h"

#include <time.h>

namespace assay {

BootClock::time_point BootClock::now() {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return time_point(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
}

WallTime SystemClock::WallNow() const {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

BootTime FakeClock::Now() const {
  MutexLock lock(mutex_);
  return now_;
}

WallTime FakeClock::WallNow() const {
  MutexLock lock(mutex_);
  return wall_;
}

void FakeClock::Advance(std::chrono::nanoseconds by) {
  MutexLock lock(mutex_);
  now_ += by;
  wall_ += std::chrono::duration_cast<std::chrono::milliseconds>(by);
}

void FakeClock::StepWall(std::chrono::milliseconds by) {
  MutexLock lock(mutex_);
  wall_ += by;
}

}  // namespace assay
