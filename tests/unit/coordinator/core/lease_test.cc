// Agents that go away and come back: leases, new instances, and restarts of the coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/bench.h"
#include "tests/unit/coordinator/core/pair.h"

namespace assay {
namespace {

using std::chrono::seconds;
using testing::SizeIs;

TEST(Lease, AttemptIsLostOnlyAfterLeaseKillGraceAndLifeline) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(session);
  bench.Do(event::AgentGone{session});
  bench.Pass(seconds(44));
  EXPECT_EQ(bench.rows.attempts.at(attempt).state, AttemptState::kStarted);
  bench.Pass(seconds(1));
  EXPECT_EQ(bench.rows.attempts.at(attempt).outcome, Outcome::kLost);
  EXPECT_FALSE(bench.rows.attempts.at(attempt).counted);
  EXPECT_EQ(bench.View(run).state, RunState::kRunning);
}

TEST(Lease, AnotherHeartbeatScalesWhatRestsOnIt) {
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

TEST(Lease, LostIsTriedTwiceAndThenIsTheOutcome) {
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

TEST(Lease, ReconnectOfTheAgentThatHoldsTheAttemptKeepsIt) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(first);
  bench.Do(event::AgentGone{first});
  bench.Pass(seconds(20));
  const SessionHandle second = bench.Hello(MakeNode("n1"), "", {attempt});
  bench.Pass(seconds(60), {second});
  bench.Report(second, attempt);
  EXPECT_EQ(bench.CellOf(run, 1).outcome, Outcome::kOk);
  EXPECT_EQ(bench.AttemptsOf(run).size(), 1u);
}

TEST(Lease, NewInstanceThatDoesNotHoldTheAttemptIsWaitedForUntilItsRunnersAreDead) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(first);
  bench.Do(event::AgentGone{first});
  const SessionHandle second = bench.Hello(MakeNode("n1"), "new");
  bench.Pass(seconds(14), {second});
  EXPECT_EQ(bench.rows.attempts.at(attempt).state, AttemptState::kStarted);
  EXPECT_THAT(bench.Take<message::Prepare>(second), SizeIs(0));
  bench.Pass(seconds(2), {second});
  EXPECT_EQ(bench.rows.attempts.at(attempt).outcome, Outcome::kLost);
  EXPECT_THAT(bench.Take<message::Prepare>(second), SizeIs(1));
}

TEST(Lease, NewInstanceThatSawItsFormerGangsEndIsNotWaitedFor) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(first);
  bench.Do(event::AgentGone{first});
  bench.former_gangs_ended = true;
  const SessionHandle second = bench.Hello(MakeNode("n1"), "new");
  EXPECT_EQ(bench.rows.attempts.at(attempt).outcome, Outcome::kLost);
  EXPECT_EQ(bench.rows.attempts.at(attempt).reason, reason::kAgentLost);
  EXPECT_THAT(bench.Take<message::Prepare>(second), SizeIs(1));
}

TEST(Lease, NewInstanceCanVouchAfterARestartOfTheCoordinatorToo) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(first);
  bench.Boot();
  bench.former_gangs_ended = true;
  const SessionHandle second = bench.Hello(MakeNode("n1"), "new");
  EXPECT_EQ(bench.rows.attempts.at(attempt).outcome, Outcome::kLost);
  EXPECT_THAT(bench.Take<message::Prepare>(second), SizeIs(1));
}

TEST(Lease, NewInstanceVouchesNeitherForAReportThatFollowsNorForWhatItHolds) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(first);
  bench.Do(event::AgentGone{first});
  bench.former_gangs_ended = true;
  const SessionHandle second = bench.Hello(MakeNode("n1"), "new", {}, {attempt});
  EXPECT_EQ(bench.rows.attempts.at(attempt).state, AttemptState::kStarted);
  bench.Report(second, attempt);
  EXPECT_EQ(bench.CellOf(run, 1).outcome, Outcome::kOk);
  EXPECT_EQ(bench.AttemptsOf(run).size(), 1u);
}

// What was seen ended on one machine, or in one boot, says nothing of another.
TEST(Lease, NewInstanceCannotVouchForAnotherMachineOrBoot) {
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

TEST(Lease, WaitForFormerRunnersGoesOnThroughAReconnectAndEndsByALaterVouch) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(first);
  bench.Do(event::AgentGone{first});
  const SessionHandle second = bench.Hello(MakeNode("n1"), "new");
  bench.Do(event::AgentGone{second});
  const SessionHandle third = bench.Hello(MakeNode("n1"), "new");
  bench.Pass(seconds(10), {third});
  EXPECT_EQ(bench.rows.attempts.at(attempt).state, AttemptState::kStarted);
  bench.Do(event::AgentGone{third});
  bench.former_gangs_ended = true;
  bench.Hello(MakeNode("n1"), "newest");
  EXPECT_EQ(bench.rows.attempts.at(attempt).outcome, Outcome::kLost);
}

TEST(Lease, LateReportIsStoredAcknowledgedAndNeverCounted) {
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

// Case 55: the wall clock decides nothing.
TEST(Lease, StepOfTheWallClockEndsNoLease) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(session);
  bench.clock.StepWall(std::chrono::hours(5));
  bench.Pass(seconds(5), {session});
  bench.clock.StepWall(-std::chrono::hours(10));
  bench.Pass(seconds(5), {session});
  EXPECT_NEAR(bench.View(run).active.at(0).seconds_running, 10, 0.01);
  EXPECT_EQ(bench.rows.attempts.at(attempt).state, AttemptState::kStarted);
}

TEST(Restart, KeepsWhatAnAgentStillHolds) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)}, 2);
  const std::string attempt = bench.StartOn(first);
  bench.Boot();
  bench.Pass(seconds(20));
  const SessionHandle second = bench.Hello(MakeNode("n1"), "", {attempt, "OLD"});
  const auto welcomes = bench.Take<message::Welcome>(second);
  ASSERT_THAT(welcomes, SizeIs(1));
  EXPECT_EQ(welcomes[0].session_epoch, 2u);
  EXPECT_EQ(welcomes[0].unknown_attempts, std::vector<std::string>{"OLD"});
  bench.last_prepare.attempt = attempt;
  bench.Report(second, attempt);
  EXPECT_EQ(bench.Drain(second), 1);
  EXPECT_EQ(bench.View(run).outcomes.at("ok"), 2u);
  EXPECT_EQ(bench.AttemptsOf(run).size(), 2u);
}

// Found by kill schedules: the row was durable, the Start was not sent, and the cell waited for the
// agent to give up a minute later.
TEST(Restart, StartThatNeverLeftIsSentToAnAgentThatStillWaitsForIt) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(first);
  bench.Boot();
  const SessionHandle second = bench.Hello(MakeNode("n1"), "", {attempt});
  EXPECT_THAT(bench.Take<message::Start>(second), SizeIs(0));
  bench.Do(event::GangReady{second, attempt, ""});
  const auto starts = bench.Take<message::Start>(second);
  ASSERT_THAT(starts, SizeIs(1));
  EXPECT_EQ(starts[0].attempt, attempt);
  bench.Report(second, attempt);
  EXPECT_EQ(bench.CellOf(run, 1).outcome, Outcome::kOk);
  EXPECT_EQ(bench.AttemptsOf(run).size(), 1u);
}

TEST(Lease, StartThatWasLostWithItsSessionIsSentInTheNext) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(first);
  bench.Do(event::AgentGone{first});
  const SessionHandle second = bench.Hello(MakeNode("n1"), "", {attempt});
  bench.Do(event::GangReady{second, attempt, "127.0.0.1:4000"});
  const auto starts = bench.Take<message::Start>(second);
  ASSERT_THAT(starts, SizeIs(1));
  EXPECT_EQ(starts[0].endpoint, "127.0.0.1:4000");
}

TEST(Restart, TakesASpooledReportAsTheResult) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(first);
  event::AttemptReport report = bench.MakeReport(first, attempt);
  bench.Boot();
  report.session = bench.Hello(MakeNode("n1"), "other instance", {}, {attempt});
  bench.Pass(seconds(20), {report.session});
  bench.Do(report);
  EXPECT_EQ(bench.CellOf(run, 1).outcome, Outcome::kOk);
}

TEST(Restart, WaitsOneLeaseBeforeAnAgentIsLost) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(session);
  bench.Pass(seconds(3600), {session});
  bench.Boot();
  bench.Pass(seconds(44));
  EXPECT_EQ(bench.rows.attempts.at(attempt).state, AttemptState::kStarted);
  bench.Pass(seconds(2));
  EXPECT_EQ(bench.rows.attempts.at(attempt).outcome, Outcome::kLost);
}

TEST(Restart, OfACancellingRunEndsItWhenItsAgentHasSpoken) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)}, 2);
  const std::string attempt = bench.StartOn(first);
  bench.Do(event::CancelRun{9, run});
  bench.Boot();
  const SessionHandle second = bench.Hello(MakeNode("n1"), "", {attempt});
  EXPECT_THAT(bench.Take<message::Abort>(second), SizeIs(1));
  bench.Report(second, attempt, Outcome::kCancelled, reason::kUserCancelled);
  EXPECT_EQ(bench.rows.runs.at(run).state, RunState::kCancelled);
}

}  // namespace
}  // namespace assay
