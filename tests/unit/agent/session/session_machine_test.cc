#include "agent/session/session_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SessionMachineTest : public testing::Test {
 protected:
  void Take(std::vector<SessionAction> actions) {
    for (SessionAction& action : actions) actions_.push_back(std::move(action));
  }
  void Advance(std::chrono::nanoseconds by) {
    clock_.Advance(by);
    Take(machine_.OnTick(clock_.Now()));
  }
  template <class T>
  size_t Count() const {
    size_t count = 0;
    for (const SessionAction& action : actions_) count += std::holds_alternative<T>(action);
    return count;
  }
  uint64_t LastBeat() const {
    uint64_t number = 0;
    for (const SessionAction& action : actions_) {
      if (const auto* beat = std::get_if<session_action::SendHeartbeat>(&action)) {
        number = beat->number;
      }
    }
    return number;
  }
  Welcome TheWelcome() { return {1, 1, 10, 30, 10, 5, {}}; }
  void ComeUp() {
    Take(machine_.Start(clock_.Now()));
    Take(machine_.OnWelcome(TheWelcome(), clock_.Now()));
  }

  FakeClock clock_;
  SessionMachine machine_{1};
  std::vector<SessionAction> actions_;
};

TEST_F(SessionMachineTest, StartDialsAndSaysHello) {
  Take(machine_.Start(clock_.Now()));
  EXPECT_EQ(Count<session_action::Dial>(), 1u);
  EXPECT_EQ(Count<session_action::SendHello>(), 1u);
  EXPECT_FALSE(machine_.up());
}

TEST_F(SessionMachineTest, WelcomeBeginsTheBeatsAndTheLease) {
  ComeUp();
  EXPECT_TRUE(machine_.up());
  EXPECT_EQ(Count<session_action::Welcomed>(), 1u);
  EXPECT_EQ(LastBeat(), 1u);
  EXPECT_EQ(*machine_.lease_end(), clock_.Now() + seconds(30));
  const BootTime next = *machine_.NextDeadline();
  EXPECT_GE(next, clock_.Now() + seconds(8));
  EXPECT_LE(next, clock_.Now() + seconds(10));
}

TEST_F(SessionMachineTest, TheLeaseCountsFromTheSendingOfTheAcknowledgedBeat) {
  ComeUp();
  Advance(seconds(10));
  const BootTime sent = clock_.Now();
  const uint64_t number = LastBeat();
  clock_.Advance(seconds(4));  // the answer takes its time
  Take(machine_.OnHeartbeatAck(number, clock_.Now()));
  EXPECT_EQ(*machine_.lease_end(), sent + seconds(30));
}

TEST_F(SessionMachineTest, AnAckOfAnOlderOrUnknownBeatDoesNotShortenTheLease) {
  ComeUp();
  Advance(seconds(10));
  Take(machine_.OnHeartbeatAck(2, clock_.Now()));
  const BootTime end = *machine_.lease_end();
  Take(machine_.OnHeartbeatAck(1, clock_.Now()));
  Take(machine_.OnHeartbeatAck(999, clock_.Now()));
  EXPECT_EQ(*machine_.lease_end(), end);
}

TEST_F(SessionMachineTest, TheLeaseEndsOnceThoughTheStreamIsGone) {
  ComeUp();
  Take(machine_.OnClosed(clock_.Now()));
  for (int i = 0; i < 29; ++i) Advance(seconds(1));
  EXPECT_EQ(Count<session_action::LeaseEnded>(), 0u);
  for (int i = 0; i < 30; ++i) Advance(seconds(1));
  EXPECT_EQ(Count<session_action::LeaseEnded>(), 1u);
}

TEST_F(SessionMachineTest, AMachineThatSleptEndsItsLeaseBeforeItBeats) {
  ComeUp();
  actions_.clear();
  Advance(seconds(3600));
  ASSERT_FALSE(actions_.empty());
  EXPECT_TRUE(std::holds_alternative<session_action::LeaseEnded>(actions_.front()));
}

TEST_F(SessionMachineTest, AReconnectWithinTheLeaseKeepsTheGangs) {
  ComeUp();
  Take(machine_.OnClosed(clock_.Now()));
  Advance(seconds(5));
  EXPECT_EQ(Count<session_action::Dial>(), 2u);
  Take(machine_.OnWelcome(TheWelcome(), clock_.Now()));
  EXPECT_EQ(*machine_.lease_end(), clock_.Now() + seconds(30));
  EXPECT_EQ(Count<session_action::LeaseEnded>(), 0u);
}

TEST_F(SessionMachineTest, WaitsGrowBetweenFailedDialsUpToTheCap) {
  Take(machine_.Start(clock_.Now()));
  for (int i = 0; i < 40; ++i) {
    Take(machine_.OnClosed(clock_.Now()));
    const auto wait = *machine_.NextDeadline() - clock_.Now();
    EXPECT_GE(wait, kFirstBackoff);
    EXPECT_LE(wait, kLongestBackoff);
    Advance(wait);
  }
  EXPECT_EQ(Count<session_action::Dial>(), 41u);
}

TEST_F(SessionMachineTest, WaitsStayUnderAHeartbeatHoweverShort) {
  Take(machine_.Start(clock_.Now()));
  Welcome welcome = TheWelcome();
  welcome.heartbeat_seconds = 0.5;
  Take(machine_.OnWelcome(welcome, clock_.Now()));
  for (int i = 0; i < 40; ++i) {
    Take(machine_.OnClosed(clock_.Now()));
    const auto wait = *machine_.NextDeadline() - clock_.Now();
    EXPECT_GE(wait, kFirstBackoff);
    EXPECT_LE(wait, milliseconds(500));
    Advance(wait);
  }
}

TEST_F(SessionMachineTest, ThreeUnansweredBeatsEndTheStream) {
  ComeUp();
  for (int i = 0; i < 29; ++i) Advance(seconds(1));
  EXPECT_EQ(Count<session_action::Close>(), 0u);
  Advance(seconds(1));
  EXPECT_EQ(Count<session_action::Close>(), 1u);
}

TEST_F(SessionMachineTest, AHelloWithoutAnswerEndsTheStream) {
  Take(machine_.Start(clock_.Now()));
  Advance(kWelcomeLimit);
  EXPECT_EQ(Count<session_action::Close>(), 1u);
  EXPECT_FALSE(machine_.up());
}

TEST_F(SessionMachineTest, ARefusalForGoodExitsAndOneWithRetryDialsAgain) {
  Take(machine_.Start(clock_.Now()));
  Take(machine_.OnRefuse({"not_admitted", "later", true}, clock_.Now()));
  EXPECT_EQ(Count<session_action::Exit>(), 0u);
  Advance(kLongestBackoff);
  EXPECT_EQ(Count<session_action::Dial>(), 2u);
  Take(machine_.OnRefuse({"duplicate_node", "two nodes", false}, clock_.Now()));
  EXPECT_EQ(Count<session_action::Exit>(), 1u);
  EXPECT_FALSE(machine_.NextDeadline().has_value());
}

TEST_F(SessionMachineTest, NumbersThatMakeNoSenseAreReplaced) {
  Take(machine_.Start(clock_.Now()));
  Welcome welcome = TheWelcome();
  welcome.heartbeat_seconds = 0;
  welcome.lease_seconds = -5;
  Take(machine_.OnWelcome(welcome, clock_.Now()));
  EXPECT_EQ(*machine_.lease_end(), clock_.Now() + seconds(30));
  EXPECT_GE(*machine_.NextDeadline(), clock_.Now() + seconds(8));
}

}  // namespace
}  // namespace assay
