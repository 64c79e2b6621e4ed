// Questions to agents about their nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status/status.h"
#include "tests/unit/coordinator/core/bench.h"

namespace assay {
namespace {

using testing::HasSubstr;

class DoctorTest : public testing::Test {
 protected:
  // Joins `node`; an agent of today unless `answers` is false.
  void Join(SessionHandle session, const std::string& node, bool answers = true) {
    event::AgentHello hello;
    hello.session = session;
    hello.protocol = 1;
    hello.instance = "instance-" + node;
    hello.inventory = MakeNode(node);
    hello.inventory.agent_version = "0.0.9";
    hello.answers_doctor = answers;
    bench_.Do(hello);
    bench_.Commit();
  }
  void Ask(ReplyToken token, const std::string& node) {
    bench_.Do(event::AskDoctor{token, node});
    bench_.Commit();
  }
  // Number of the question that was last sent to `session`; 0: none.
  uint64_t Asked(SessionHandle session) const {
    uint64_t number = 0;
    for (const SendToAgent& send : bench_.sends) {
      const auto* question = std::get_if<message::DoctorQuestion>(&send.message);
      if (question != nullptr && send.session == session) number = question->number;
    }
    return number;
  }
  void Answer(SessionHandle session, uint64_t number, const std::string& error = "") {
    event::DoctorAnswer answer;
    answer.session = session;
    answer.number = number;
    answer.error = error;
    answer.report.node = "a name that the agent chose";
    answer.report.checks.push_back({"disk", CheckState::kBad, "full", ""});
    bench_.Do(answer);
  }
  absl::StatusCode CodeOf(ReplyToken token) const { return bench_.replies.at(token).status.code(); }
  std::string Said(ReplyToken token) const { return Message(bench_.replies.at(token).status); }
  bool Open(ReplyToken token) const { return !bench_.replies.contains(token); }

  Bench bench_;
};

TEST_F(DoctorTest, TheAnswerOfTheAgentIsTheReplyUnderTheNodesName) {
  Join(1, "n1");
  Ask(7, "n1");
  ASSERT_NE(Asked(1), 0u);
  EXPECT_TRUE(Open(7));
  Answer(1, Asked(1));
  ASSERT_FALSE(Open(7));
  ASSERT_TRUE(bench_.replies.at(7).status.ok());
  const auto& report = std::get<DoctorReply>(bench_.replies.at(7).body).report;
  EXPECT_EQ(report.node, "n1");
  ASSERT_EQ(report.checks.size(), 1u);
  EXPECT_EQ(report.checks[0].finding, "full");
}

TEST_F(DoctorTest, AnErrorOfTheAgentNamesTheNode) {
  Join(1, "n1");
  Ask(7, "n1");
  Answer(1, Asked(1), "the checks did not end within 90 s");
  EXPECT_EQ(CodeOf(7), absl::StatusCode::kInternal);
  EXPECT_EQ(Said(7), "node n1: the checks did not end within 90 s");
}

TEST_F(DoctorTest, AnUnknownNodeIsNotFound) {
  Ask(7, "nobody");
  EXPECT_EQ(CodeOf(7), absl::StatusCode::kNotFound);
}

TEST_F(DoctorTest, ANodeWhoseAgentIsAwayIsUnavailable) {
  Join(1, "n1");
  bench_.Do(event::AgentGone{1});
  Ask(7, "n1");
  EXPECT_EQ(CodeOf(7), absl::StatusCode::kUnavailable);
}

TEST_F(DoctorTest, AnOlderAgentIsNotAskedAndTheSentenceSaysWhy) {
  Join(1, "n1", false);
  Ask(7, "n1");
  EXPECT_EQ(Asked(1), 0u);
  EXPECT_EQ(CodeOf(7), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Said(7), HasSubstr("version 0.0.9"));
}

TEST_F(DoctorTest, ASessionThatEndsEndsItsQuestions) {
  Join(1, "n1");
  Join(2, "n2");
  Ask(7, "n1");
  Ask(8, "n2");
  bench_.Do(event::AgentGone{1});
  bench_.Commit();
  EXPECT_EQ(CodeOf(7), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Open(8));
}

TEST_F(DoctorTest, ANewSessionOfTheSameAgentEndsTheQuestionsOfTheOldOne) {
  Join(1, "n1");
  Ask(7, "n1");
  Join(2, "n1");
  bench_.Do(event::Tick{});
  bench_.Commit();
  EXPECT_EQ(CodeOf(7), absl::StatusCode::kUnavailable);
}

TEST_F(DoctorTest, SilenceEndsAtTheDeadlineAndALateAnswerIsNobodys) {
  bench_.times.lease = std::chrono::hours(1);
  bench_.Boot();
  Join(1, "n1");
  Ask(7, "n1");
  bench_.clock.Advance(bench_.times.doctor - std::chrono::milliseconds(1));
  bench_.Do(event::Tick{});
  EXPECT_TRUE(Open(7));
  bench_.clock.Advance(std::chrono::milliseconds(1));
  bench_.Do(event::Tick{});
  bench_.Commit();
  EXPECT_EQ(CodeOf(7), absl::StatusCode::kDeadlineExceeded);
  bench_.replies.clear();
  Answer(1, Asked(1));
  EXPECT_TRUE(bench_.replies.empty());
}

TEST_F(DoctorTest, AnAnswerOfAnotherSessionOrNumberIsDropped) {
  Join(1, "n1");
  Join(2, "n2");
  Ask(7, "n1");
  Answer(2, Asked(1));
  Answer(1, Asked(1) + 1);
  EXPECT_TRUE(Open(7));
  Answer(1, Asked(1));
  EXPECT_FALSE(Open(7));
}

TEST_F(DoctorTest, QuestionsToOneNodeAreBounded) {
  Join(1, "n1");
  for (ReplyToken token = 1; token <= 16; ++token) Ask(token, "n1");
  EXPECT_TRUE(Open(16));
  Ask(17, "n1");
  EXPECT_EQ(CodeOf(17), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace assay
