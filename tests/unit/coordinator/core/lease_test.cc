// Agents that go away and come back: leases, new instances, and restarts of the coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/bench.h"
#include "tests/unit/coordinator/core/pair.h"

namespace assay {
namespace {

using std::chrono::seconds;
using testing::SizeIs;

// A cell of one spec that runs on n1.
class Lease : public testing::Test {
 protected:
  void Begin(int repeat = 1) {
    session_ = bench_.Hello(MakeNode("n1"));
    run_ = bench_.Submit({MakeSpec(0)}, repeat);
    attempt_ = bench_.StartOn(session_);
  }
  void Lose() { bench_.Do(event::AgentGone{session_}); }
  const AttemptRow& Attempt() { return bench_.rows.attempts.at(attempt_); }

  Bench bench_;
  SessionHandle session_ = 0;
  std::string run_;
  std::string attempt_;
};
using Restart = Lease;

TEST_F(Lease, AttemptIsLostOnlyAfterLeaseKillGraceAndLifeline) {
  Begin();
  Lose();
  bench_.Pass(seconds(44));
  EXPECT_EQ(Attempt().state, AttemptState::kStarted);
  bench_.Pass(seconds(1));
  EXPECT_EQ(Attempt().outcome, Outcome::kLost);
  EXPECT_FALSE(Attempt().counted);
  EXPECT_EQ(bench_.View(run_).state, RunState::kRunning);
}

TEST(LeaseOfMany, AnotherHeartbeatScalesWhatRestsOnIt) {
  const CoordinatorTimes usual = CoordinatorTimes::WithHeartbeat(seconds(10));
  EXPECT_EQ(usual.lease, CoordinatorTimes().lease);
  EXPECT_EQ(usual.lifeline, CoordinatorTimes().lifeline);
  EXPECT_EQ(usual.kill_grace, CoordinatorTimes().kill_grace);
  Bench bench(CoordinatorTimes::WithHeartbeat(seconds(2)));
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(session);
  bench.Do(event::AgentGone{session});
  bench.Pass(seconds(8));  // 3 heartbeats of lease, 1/2 of grace and 1 of lifeline are 9 s
  EXPECT_EQ(bench.rows.attempts.at(attempt).state, AttemptState::kStarted);
  bench.Pass(seconds(1));
  EXPECT_EQ(bench.rows.attempts.at(attempt).outcome, Outcome::kLost);
}

TEST(LeaseOfMany, LostIsTriedTwiceAndThenIsTheOutcome) {
  Bench bench;
  const std::string run = bench.Submit(
      {MakeSpec(0)}, 1, [](event::SubmitRun& s) { s.matrix.select.wait_seconds = 600; });
  int attempts = 0;
  for (int i = 0; i < 5; ++i) {
    const SessionHandle session = bench.Hello(MakeNode("n1"), fmt::format("instance-{}", i));
    bench.Pass(seconds(2), {session});
    if (bench.StartOn(session).empty()) break;
    ++attempts;
    bench.Do(event::AgentGone{session});
    bench.Pass(seconds(60));
  }
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(bench.CellOf(run, 1).outcome, Outcome::kLost);
}

TEST_F(Lease, ReconnectOfTheAgentThatHoldsTheAttemptKeepsIt) {
  Begin();
  Lose();
  bench_.Pass(seconds(20));
  const SessionHandle second = bench_.Hello(MakeNode("n1"), "", {attempt_});
  bench_.Pass(seconds(60), {second});
  bench_.Report(second, attempt_);
  EXPECT_EQ(bench_.CellOf(run_, 1).outcome, Outcome::kOk);
  EXPECT_EQ(bench_.AttemptsOf(run_).size(), 1u);
}

// A partition heals, and the first hello comes through behind that of a later session.
TEST_F(Lease, HelloThatWasOvertakenByALaterOneIsNotTaken) {
  const auto hello = [&](SessionHandle session, uint64_t ordinal) {
    event::AgentHello event;
    event.session = session;
    event.instance = "an instance";
    event.inventory = MakeNode("n1");
    event.ordinal = ordinal;
    bench_.Do(event);
  };
  hello(12, 2);
  run_ = bench_.Submit({MakeSpec(0)});
  attempt_ = bench_.StartOn(12);
  hello(11, 1);
  EXPECT_EQ(bench_.closed, std::vector<SessionHandle>{11});
  EXPECT_THAT(bench_.Take<message::Welcome>(11), SizeIs(0));
  bench_.Do(event::AgentGone{11});
  EXPECT_EQ(bench_.state->Agents()[0].state, "up");
  EXPECT_EQ(Attempt().state, AttemptState::kStarted);
  bench_.Report(12, attempt_);
  EXPECT_EQ(bench_.CellOf(run_, 1).outcome, Outcome::kOk);
}

TEST_F(Lease, NewInstanceThatDoesNotHoldTheAttemptIsWaitedForUntilItsRunnersAreDead) {
  Begin();
  Lose();
  const SessionHandle second = bench_.Hello(MakeNode("n1"), "new");
  bench_.Pass(seconds(14), {second});
  EXPECT_EQ(Attempt().state, AttemptState::kStarted);
  EXPECT_THAT(bench_.Take<message::Prepare>(second), SizeIs(0));
  bench_.Pass(seconds(2), {second});
  EXPECT_EQ(Attempt().outcome, Outcome::kLost);
  EXPECT_THAT(bench_.Take<message::Prepare>(second), SizeIs(1));
}

TEST_F(Lease, NewInstanceThatSawItsFormerGangsEndIsNotWaitedFor) {
  Begin();
  Lose();
  bench_.former_gangs_ended = true;
  const SessionHandle second = bench_.Hello(MakeNode("n1"), "new");
  EXPECT_EQ(Attempt().outcome, Outcome::kLost);
  EXPECT_EQ(Attempt().reason, reason::kAgentLost);
  EXPECT_THAT(bench_.Take<message::Prepare>(second), SizeIs(1));
}

TEST_F(Lease, NewInstanceCanVouchAfterARestartOfTheCoordinatorToo) {
  Begin();
  bench_.Boot();
  bench_.former_gangs_ended = true;
  const SessionHandle second = bench_.Hello(MakeNode("n1"), "new");
  EXPECT_EQ(Attempt().outcome, Outcome::kLost);
  EXPECT_THAT(bench_.Take<message::Prepare>(second), SizeIs(1));
}

TEST_F(Lease, NewInstanceVouchesNeitherForAReportThatFollowsNorForWhatItHolds) {
  Begin();
  Lose();
  bench_.former_gangs_ended = true;
  const SessionHandle second = bench_.Hello(MakeNode("n1"), "new", {}, {attempt_});
  EXPECT_EQ(Attempt().state, AttemptState::kStarted);
  bench_.Report(second, attempt_);
  EXPECT_EQ(bench_.CellOf(run_, 1).outcome, Outcome::kOk);
  EXPECT_EQ(bench_.AttemptsOf(run_).size(), 1u);
}

// What was seen ended on one machine, or in one boot, says nothing of another.
TEST(LeaseOfMany, NewInstanceCannotVouchForAnotherMachineOrBoot) {
  NodeInventory unknown = MakeNode("n1"), booted = MakeNode("n1"), moved = MakeNode("n1");
  unknown.boot_id.clear();
  booted.boot_id = "later boot";
  moved.machine_id = "another machine";
  for (const NodeInventory& inventory : {unknown, booted, moved}) {
    Bench bench;
    NodeInventory before = MakeNode("n1");
    if (inventory.boot_id.empty()) before.boot_id.clear();
    const SessionHandle first = bench.Hello(before);
    bench.Submit({MakeSpec(0)});
    const std::string attempt = bench.StartOn(first);
    bench.Boot();
    bench.former_gangs_ended = true;
    const SessionHandle second = bench.Hello(inventory, "new");
    EXPECT_THAT(bench.Take<message::Welcome>(second), SizeIs(1));
    bench.Pass(seconds(14), {second});
    EXPECT_EQ(bench.rows.attempts.at(attempt).state, AttemptState::kStarted);
    bench.Pass(seconds(2), {second});
    EXPECT_EQ(bench.rows.attempts.at(attempt).outcome, Outcome::kLost);
  }
}

TEST_F(Lease, WaitForFormerRunnersGoesOnThroughAReconnectAndEndsByALaterVouch) {
  Begin();
  Lose();
  const SessionHandle second = bench_.Hello(MakeNode("n1"), "new");
  bench_.Do(event::AgentGone{second});
  const SessionHandle third = bench_.Hello(MakeNode("n1"), "new");
  bench_.Pass(seconds(10), {third});
  EXPECT_EQ(Attempt().state, AttemptState::kStarted);
  bench_.Do(event::AgentGone{third});
  bench_.former_gangs_ended = true;
  bench_.Hello(MakeNode("n1"), "newest");
  EXPECT_EQ(Attempt().outcome, Outcome::kLost);
}

TEST(LeaseOfMany, LateReportIsStoredAcknowledgedAndNeverCounted) {
  Bench bench;
  const SessionHandle a = bench.Hello(MakeNode("n1"));
  const SessionHandle b = bench.Hello(MakeNode("n2"));
  bench.Pass(seconds(2), {b});
  const std::string run = bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(a);
  const event::AttemptReport report = bench.MakeReport(a, attempt);
  bench.Do(event::AgentGone{a});
  bench.Pass(seconds(50), {b});
  const std::string second = bench.StartOn(b);
  ASSERT_NE(second, "");
  event::AttemptReport late = report;
  late.session = bench.Hello(MakeNode("n1"), "", {}, {attempt});
  bench.Do(late);
  EXPECT_THAT(bench.Take<message::ReportAck>(late.session), SizeIs(1));
  EXPECT_TRUE(bench.rows.attempts.at(attempt).late);
  EXPECT_FALSE(bench.rows.attempts.at(attempt).counted);
  bench.Report(b, second);
  EXPECT_EQ(bench.CellOf(run, 1).counted_attempt, second);
}

TEST(LeaseOfMany, LatePartOfAGangIsNoResult) {
  Bench bench;
  const SessionHandle a = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(a);
  event::AttemptReport late = bench.MakeReport(a, attempt);
  bench.Do(event::AgentGone{a});
  bench.Pass(seconds(50));
  late.session = bench.Hello(MakeNode("n1"), "", {}, {attempt});
  late.ranks[0].fields.Set(Field::kWorldSize, int64_t{2}).IgnoreError();
  bench.Do(late);
  EXPECT_TRUE(bench.rows.attempts.at(attempt).late);
  EXPECT_EQ(bench.rows.attempts.at(attempt).outcome, Outcome::kLost);
  EXPECT_NE(bench.rows.attempts.at(attempt).message.find("n1 alone"), std::string::npos);
}

// Case 55: the wall clock decides nothing.
TEST_F(Lease, StepOfTheWallClockEndsNoLease) {
  Begin();
  bench_.clock.StepWall(std::chrono::hours(5));
  bench_.Pass(seconds(5), {session_});
  bench_.clock.StepWall(-std::chrono::hours(10));
  bench_.Pass(seconds(5), {session_});
  EXPECT_NEAR(bench_.View(run_).active.at(0).seconds_running, 10, 0.01);
  EXPECT_EQ(Attempt().state, AttemptState::kStarted);
}

TEST_F(Restart, KeepsWhatAnAgentStillHolds) {
  Begin(2);
  bench_.Boot();
  bench_.Pass(seconds(20));
  const SessionHandle second = bench_.Hello(MakeNode("n1"), "", {attempt_, "OLD"});
  const auto welcomes = bench_.Take<message::Welcome>(second);
  ASSERT_THAT(welcomes, SizeIs(1));
  EXPECT_EQ(welcomes[0].session_epoch, 2u);
  EXPECT_EQ(welcomes[0].unknown_attempts, std::vector<std::string>{"OLD"});
  bench_.last_prepare.attempt = attempt_;
  bench_.Report(second, attempt_);
  EXPECT_EQ(bench_.Drain(second), 1);
  EXPECT_EQ(bench_.View(run_).outcomes.at("ok"), 2u);
  EXPECT_EQ(bench_.AttemptsOf(run_).size(), 2u);
}

// Found by kill schedules: the row was durable, the Start was not sent, and the cell waited for the
// agent to give up a minute later.
TEST_F(Restart, StartThatNeverLeftIsSentToAnAgentThatStillWaitsForIt) {
  Begin();
  bench_.Boot();
  const SessionHandle second = bench_.Hello(MakeNode("n1"), "", {attempt_});
  EXPECT_THAT(bench_.Take<message::Start>(second), SizeIs(0));
  bench_.Do(event::GangReady{second, attempt_, ""});
  const auto starts = bench_.Take<message::Start>(second);
  ASSERT_THAT(starts, SizeIs(1));
  EXPECT_EQ(starts[0].attempt, attempt_);
  bench_.Report(second, attempt_);
  EXPECT_EQ(bench_.CellOf(run_, 1).outcome, Outcome::kOk);
  EXPECT_EQ(bench_.AttemptsOf(run_).size(), 1u);
}

TEST_F(Lease, StartThatWasLostWithItsSessionIsSentInTheNext) {
  Begin();
  Lose();
  const SessionHandle second = bench_.Hello(MakeNode("n1"), "", {attempt_});
  bench_.Do(event::GangReady{second, attempt_, "127.0.0.1:4000"});
  const auto starts = bench_.Take<message::Start>(second);
  ASSERT_THAT(starts, SizeIs(1));
  EXPECT_EQ(starts[0].endpoint, "127.0.0.1:4000");
}

TEST_F(Restart, TakesASpooledReportAsTheResult) {
  Begin();
  event::AttemptReport report = bench_.MakeReport(session_, attempt_);
  bench_.Boot();
  report.session = bench_.Hello(MakeNode("n1"), "other instance", {}, {attempt_});
  bench_.Pass(seconds(20), {report.session});
  bench_.Do(report);
  EXPECT_EQ(bench_.CellOf(run_, 1).outcome, Outcome::kOk);
}

TEST_F(Restart, WaitsOneLeaseBeforeAnAgentIsLost) {
  Begin();
  bench_.Pass(seconds(3600), {session_});
  bench_.Boot();
  bench_.Pass(seconds(44));
  EXPECT_EQ(Attempt().state, AttemptState::kStarted);
  bench_.Pass(seconds(2));
  EXPECT_EQ(Attempt().outcome, Outcome::kLost);
}

TEST_F(Restart, OfACancellingRunEndsItWhenItsAgentHasSpoken) {
  Begin(2);
  bench_.Do(event::CancelRun{9, run_});
  bench_.Boot();
  const SessionHandle second = bench_.Hello(MakeNode("n1"), "", {attempt_});
  EXPECT_THAT(bench_.Take<message::Abort>(second), SizeIs(1));
  bench_.Report(second, attempt_, Outcome::kCancelled, reason::kUserCancelled);
  EXPECT_EQ(bench_.rows.runs.at(run_).state, RunState::kCancelled);
}

}  // namespace
}  // namespace assay
