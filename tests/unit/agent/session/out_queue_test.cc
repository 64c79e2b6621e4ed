#include "agent/session/out_queue.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(OutQueue, NewerProgressOfAnAttemptReplacesTheOlderInItsPlace) {
  OutQueue queue;
  queue.Push(GangProgress{"A", "warmup", 1, 0, 0});
  queue.Push(GangProgress{"B", "warmup", 1, 0, 0});
  queue.Push(GangProgress{"A", "measure", 9, 0, 0});
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(std::get<GangProgress>(*queue.Pop()).step, 9u);
  EXPECT_EQ(std::get<GangProgress>(*queue.Pop()).attempt, "B");
}

TEST(OutQueue, HistoryKeepsItsOrderAndIsNeverReplaced) {
  OutQueue queue;
  queue.Push(GangReady{"A", "1"});
  queue.Push(RanksJoined{"A", {0}});
  queue.Push(RanksJoined{"A", {1}});
  EXPECT_TRUE(std::holds_alternative<GangReady>(*queue.Pop()));
  EXPECT_EQ(std::get<RanksJoined>(*queue.Pop()).ranks[0], 0u);
  EXPECT_EQ(std::get<RanksJoined>(*queue.Pop()).ranks[0], 1u);
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(OutQueue, OneHeartbeatAndOneCopyOfAReportWait) {
  OutQueue queue;
  queue.Push(Heartbeat{1, {}, false});
  queue.Push(SpooledReport{"A", "x"});
  queue.Push(Heartbeat{2, {}, false});
  queue.Push(SpooledReport{"A", "x"});
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(std::get<Heartbeat>(*queue.Pop()).number, 2u);
}

TEST(OutQueue, HelloGoesFirst) {
  OutQueue queue;
  queue.Push(GangReady{"A", ""});
  queue.Push(Hello{});
  EXPECT_TRUE(std::holds_alternative<Hello>(*queue.Pop()));
}

}  // namespace
}  // namespace assay
