#include "common/clock/clock.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(FakeClock, StandsStillUntilTold) {
  const FakeClock clock;
  EXPECT_EQ(clock.Now(), clock.Now());
  EXPECT_EQ(clock.Now().time_since_epoch(), seconds(1000));
}

TEST(FakeClock, AdvanceMovesBothClocks) {
  FakeClock clock;
  const BootTime boot = clock.Now();
  const WallTime wall = clock.WallNow();
  clock.Advance(milliseconds(1500));
  EXPECT_EQ(clock.Now() - boot, milliseconds(1500));
  EXPECT_EQ(clock.WallNow() - wall, milliseconds(1500));
}

// Case 55: the wall clock steps by an hour and back; durations do not see it.
TEST(FakeClock, AStepOfTheWallDoesNotMoveTheBootClock) {
  FakeClock clock;
  const BootTime boot = clock.Now();
  const WallTime wall = clock.WallNow();
  clock.StepWall(seconds(-3600));
  EXPECT_EQ(clock.Now(), boot);
  EXPECT_EQ(clock.WallNow() - wall, seconds(-3600));
}

TEST(SystemClock, BootTimeNeverRunsBack) {
  const SystemClock clock;
  BootTime last = clock.Now();
  for (int i = 0; i < 1000; ++i) {
    const BootTime now = clock.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace assay
