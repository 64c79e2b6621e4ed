#include "agent/process/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <thread>

namespace assay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class EventLoopTest : public testing::Test {
 protected:
  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  BootTime deadline_ = BootClock::now() + seconds(20);
};

TEST_F(EventLoopTest, RunsTimersInOrderOfTheirTime) {
  std::vector<int> ran;
  const BootTime now = BootClock::now();
  loop_->RunAt(now + milliseconds(2), [&] { ran.push_back(2); });
  loop_->RunAt(now + milliseconds(1), [&] { ran.push_back(1); });
  loop_->RunAt(now - seconds(1), [&] { ran.push_back(0); });
  EXPECT_TRUE(loop_->RunUntil([&] { return ran.size() == 3; }, deadline_));
  EXPECT_THAT(ran, testing::ElementsAre(0, 1, 2));
}

TEST_F(EventLoopTest, RunsATimerOfTheZeroOfTimeAtOnce) {
  bool ran = false;
  loop_->RunAt(BootTime{}, [&] { ran = true; });
  EXPECT_TRUE(loop_->RunUntil([&] { return ran; }, deadline_));
}

TEST_F(EventLoopTest, DoesNotRunACancelledTimer) {
  bool ran = false;
  bool later = false;
  const auto timer = loop_->RunAt(BootClock::now(), [&] { ran = true; });
  loop_->Cancel(timer);
  loop_->RunAt(BootClock::now() + milliseconds(1), [&] { later = true; });
  EXPECT_TRUE(loop_->RunUntil([&] { return later; }, deadline_));
  EXPECT_FALSE(ran);
}

TEST_F(EventLoopTest, RunsOnItsOwnThreadWhatAnotherPosts) {
  const auto loop_thread = std::this_thread::get_id();
  std::thread::id ran_on;
  std::thread poster([&] {
    loop_->Post([&] {
      ran_on = std::this_thread::get_id();
      loop_->Stop();
    });
  });
  loop_->Run();
  poster.join();
  EXPECT_EQ(ran_on, loop_thread);
}

TEST_F(EventLoopTest, ReportsAReadableDescriptorUntilUnwatched) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  int calls = 0;
  ASSERT_TRUE(loop_
                  ->Watch(read_end.get(), EPOLLIN,
                          [&](uint32_t) {
                            if (++calls == 2) loop_->Unwatch(read_end.get());
                          })
                  .ok());
  ASSERT_EQ(::write(write_end.get(), "x", 1), 1);
  bool later = false;
  EXPECT_TRUE(loop_->RunUntil([&] { return calls == 2; }, deadline_));
  loop_->Post([&] { later = true; });
  EXPECT_TRUE(loop_->RunUntil([&] { return later; }, deadline_));
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace assay
