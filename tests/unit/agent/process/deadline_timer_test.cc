#include "agent/process/deadline_timer.h"

#include <gtest/gtest.h>

#include <memory>

namespace assay {
namespace {

using std::chrono::seconds;

class DeadlineTimerTest : public testing::Test {
 protected:
  // Until all that is due now has run.
  void RunWhatIsDue() {
    bool ran = false;
    loop_->RunAt(BootClock::now(), [&] { ran = true; });
    ASSERT_TRUE(loop_->RunUntil([&] { return ran; }, BootClock::now() + seconds(20)));
  }

  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  int due_ = 0;
  std::unique_ptr<DeadlineTimer> timer_ =
      std::make_unique<DeadlineTimer>(*loop_, [this] { ++due_; });
};

TEST_F(DeadlineTimerTest, CallsOnceForATimeThatCame) {
  const BootTime now = BootClock::now();
  timer_->Set(now);
  timer_->Set(now);
  RunWhatIsDue();
  RunWhatIsDue();
  EXPECT_EQ(due_, 1);
}

TEST_F(DeadlineTimerTest, ALaterTimeTakesThePlaceOfTheFirst) {
  timer_->Set(BootClock::now());
  timer_->Set(BootClock::now() + seconds(100));
  RunWhatIsDue();
  EXPECT_EQ(due_, 0);
  timer_->Set(BootClock::now());
  RunWhatIsDue();
  EXPECT_EQ(due_, 1);
}

TEST_F(DeadlineTimerTest, TheSameTimeMayBeSetAgainOnceItCame) {
  const BootTime now = BootClock::now();
  timer_->Set(now);
  RunWhatIsDue();
  timer_->Set(now);
  RunWhatIsDue();
  EXPECT_EQ(due_, 2);
}

TEST_F(DeadlineTimerTest, NothingIsCalledAfterNoneWasSetOrItsEnd) {
  timer_->Set(BootClock::now());
  timer_->Set(std::nullopt);
  RunWhatIsDue();
  timer_->Set(BootClock::now());
  timer_.reset();
  RunWhatIsDue();
  EXPECT_EQ(due_, 0);
}

}  // namespace
}  // namespace assay
