#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <variant>

#include "common/wire/wire.h"
#include "coordinator/session/message_codec.h"
#include "coordinator/session/outbound_queue.h"

namespace assay {
namespace {

TEST(OutboundQueueTest, CommandsKeepTheirOrderAndHeartbeatsTheirNewest) {
  OutboundQueue queue;
  EXPECT_TRUE(queue.Push(message::HeartbeatAck{1}));
  EXPECT_TRUE(queue.Push(message::ReportAck{"a"}));
  EXPECT_TRUE(queue.Push(message::HeartbeatAck{2}));
  EXPECT_TRUE(queue.Push(message::ReportAck{"b"}));
  EXPECT_EQ(std::get<message::HeartbeatAck>(*queue.Pop()).number, 2u);
  EXPECT_EQ(std::get<message::ReportAck>(*queue.Pop()).attempt, "a");
  EXPECT_EQ(std::get<message::ReportAck>(*queue.Pop()).attempt, "b");
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(OutboundQueueTest, FullQueueTakesNoCommandRatherThanDropOne) {
  OutboundQueue queue;
  for (size_t i = 0; i < OutboundQueue::kMostMessages; ++i) {
    ASSERT_TRUE(queue.Push(message::ReportAck{std::to_string(i)}));
  }
  EXPECT_FALSE(queue.Push(message::ReportAck{"one too many"}));
  EXPECT_EQ(std::get<message::ReportAck>(*queue.Pop()).attempt, "0");
  EXPECT_TRUE(queue.Push(message::ReportAck{"fits"}));
}

TEST(MessageCodecTest, EmptyMessageIsNoEvent) {
  EXPECT_FALSE(EventOf(1, "peer", v1::AgentMessage()).has_value());
}

TEST(MessageCodecTest, HelloSaysWhatTheAgentVouchesFor) {
  v1::AgentMessage message;
  message.mutable_hello()->set_instance("i");
  const auto silent = std::get<event::AgentHello>(*EventOf(1, "peer", message));
  EXPECT_FALSE(silent.former_gangs_ended);  // as from an older agent
  message.mutable_hello()->set_former_gangs_ended(true);
  EXPECT_TRUE(std::get<event::AgentHello>(*EventOf(1, "peer", message)).former_gangs_ended);
}

// Cases 47 and 53.
TEST(MessageCodecTest, HostileReportIsCutScrubbedAndNeverASuccessItDidNotClaim) {
  v1::AgentMessage message;
  v1::AttemptReport* report = message.mutable_report();
  report->set_attempt(std::string(1 << 20, 'a'));
  report->set_seconds(std::numeric_limits<double>::infinity());
  v1::RankReport* rank = report->add_ranks();
  rank->set_outcome(static_cast<v1::Outcome>(77));
  rank->set_message(std::string(100'000, 'm') + "\xFF");
  rank->set_log_tail(std::string(1 << 20, '\xFF'));
  for (int i = 0; i < 10'000; ++i) rank->add_fields()->set_name("unknown");
  const std::optional<Event> event = EventOf(3, "peer", message);
  ASSERT_TRUE(event.has_value());
  const auto& got = std::get<event::AttemptReport>(*event);
  EXPECT_EQ(got.session, 3u);
  EXPECT_LE(got.attempt.size(), wire::kMaxNameBytes);
  EXPECT_EQ(got.seconds, 0);
  ASSERT_EQ(got.ranks.size(), 1u);
  EXPECT_EQ(got.ranks[0].outcome, Outcome::kFail);
  EXPECT_LE(got.ranks[0].message.size(), wire::kMaxSentenceBytes);
  EXPECT_LE(got.ranks[0].log_tail.size(), wire::kMaxLogTailBytes);
  EXPECT_EQ(got.ranks[0].fields, Record());
}

TEST(MessageCodecTest, PrepareCarriesItsSpecAndGang) {
  message::Prepare prepare;
  prepare.attempt = "a1";
  prepare.cell = 7;
  prepare.spec.model = "resnet50";
  prepare.members = {{"n1", "GPU-1", 0}, {"n2", "GPU-2", 1}};
  const v1::CoordinatorMessage out = MessageOf(prepare);
  ASSERT_TRUE(out.has_prepare());
  EXPECT_EQ(out.prepare().spec().model(), "resnet50");
  ASSERT_EQ(out.prepare().members_size(), 2);
  EXPECT_EQ(out.prepare().members(1).gpu_uuid(), "GPU-2");
  EXPECT_EQ(out.prepare().members(1).local_rank(), 1u);
}

}  // namespace
}  // namespace assay
