// Clock: what time it is, so that a test can move it.
//
// Durations and deadlines use BootTime, which also runs while the machine sleeps and never steps;
// WallTime is only for showing. Thread rule: any thread.
#ifndef ASSAY_COMMON_CLOCK_CLOCK_H_
#define ASSAY_COMMON_CLOCK_CLOCK_H_

#include <chrono>
#include <cstdint>

#include "common/sync/mutex.h"

namespace assay {

// CLOCK_BOOTTIME of this machine. Points of two machines, or of two boots, are not comparable.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now();
};
using BootTime = BootClock::time_point;
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual BootTime Now() const = 0;
  virtual WallTime WallNow() const = 0;
};

class SystemClock final : public Clock {
 public:
  BootTime Now() const override { return BootClock::now(); }
  WallTime WallNow() const override;
};

// Starts at 1,000 s of boot time and 2026-01-01T00:00:00Z; moves only when told.
class FakeClock final : public Clock {
 public:
  BootTime Now() const override;
  WallTime WallNow() const override;
  void Advance(std::chrono::nanoseconds by);
  // The wall clock alone, as NTP or an operator would step it.
  void StepWall(std::chrono::milliseconds by);

 private:
  mutable Mutex mutex_;
  BootTime now_ ASSAY_GUARDED_BY(mutex_){std::chrono::seconds(1000)};
  WallTime wall_ ASSAY_GUARDED_BY(mutex_){std::chrono::milliseconds(1767225600000)};
};

}  // namespace assay

#endif  // ASSAY_COMMON_CLOCK_CLOCK_H_
