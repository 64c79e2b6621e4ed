// Agents' side of a gang: offers, starts, reports, retries, limits, names and draining.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/bench.h"
#include "tests/unit/coordinator/core/pair.h"

namespace assay {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

TEST(OneCell, GoesFromOfferToACompleteStoredRecord) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(session);
  EXPECT_EQ(bench.last_prepare.stack, "libtorch-2.11.0");
  EXPECT_EQ(bench.View(run).state, RunState::kRunning);
  bench.Do(event::RanksJoined{session, attempt, {0}});
  bench.Report(session, attempt);
  EXPECT_THAT(bench.Take<message::ReportAck>(session), SizeIs(1));
  EXPECT_EQ(bench.View(run).state, RunState::kDone);
  const AttemptRow row = bench.rows.attempts.at(attempt);
  EXPECT_TRUE(row.counted);
  EXPECT_EQ(row.record.Text(Field::kOutcome), "ok");
  EXPECT_EQ(row.record.Text(Field::kTarget), "RTX 3090");
  EXPECT_EQ(row.record.Text(Field::kCard), "RTX 3090");
  EXPECT_EQ(row.record.Text(Field::kNode), "n1");
  EXPECT_EQ(row.record.Text(Field::kStack), "libtorch-2.11.0");
  EXPECT_EQ(row.record.Text(Field::kGpuUuids), "GPU-n1-0");
  EXPECT_EQ(row.record.Text(Field::kAttempt), attempt);
  EXPECT_EQ(row.record.Text(Field::kStartedAt), "2026-01-01T00:00:00.000Z");
  EXPECT_EQ(row.record.Integer(Field::kCell), 1);
  EXPECT_EQ(row.record.Number(Field::kThroughput), 800);
  EXPECT_THAT(row.cell_file, HasSubstr("resnet50"));
}

TEST(Durability, StartWaitsForTheAttemptsRowAndAckForItsResult) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)});
  const auto prepares = bench.Take<message::Prepare>(session);
  ASSERT_THAT(prepares, SizeIs(1));
  bench.auto_commit = false;
  bench.Do(event::GangReady{session, prepares[0].attempt, "x:1"});
  EXPECT_THAT(bench.Take<message::Start>(session), SizeIs(0));
  bench.Commit();
  EXPECT_THAT(bench.Take<message::Start>(session), SizeIs(1));
  bench.Report(session, prepares[0].attempt);
  EXPECT_THAT(bench.Take<message::ReportAck>(session), SizeIs(0));
  bench.Commit();
  EXPECT_THAT(bench.Take<message::ReportAck>(session), SizeIs(1));
}

TEST(Durability, HeartbeatsAreAnsweredWhileTheDiskIsSlow) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  bench.auto_commit = false;
  bench.Submit({MakeSpec(0)});
  bench.Beat(session);
  EXPECT_THAT(bench.Take<message::HeartbeatAck>(session), SizeIs(1));
}

TEST(GangStart, OthersArePreparedWithTheEndpointOfRankZeroAndAllStartTogether) {
  Pair pair;
  auto first = pair.bench.Take<message::Prepare>(pair.a);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].endpoint, "");
  EXPECT_THAT(first[0].members, SizeIs(2));
  EXPECT_THAT(pair.bench.Take<message::Prepare>(pair.b), SizeIs(0));
  pair.bench.Do(event::GangReady{pair.a, first[0].attempt, "10.0.0.1:4000"});
  auto second = pair.bench.Take<message::Prepare>(pair.b);
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(second[0].endpoint, "10.0.0.1:4000");
  EXPECT_THAT(pair.bench.Take<message::Start>(pair.a), SizeIs(0));
  pair.bench.Do(event::GangReady{pair.b, first[0].attempt, ""});
  EXPECT_THAT(pair.bench.Take<message::Start>(pair.a), SizeIs(1));
  EXPECT_THAT(pair.bench.Take<message::Start>(pair.b), SizeIs(1));
}

TEST(GangStart, RankThatDoesNotJoinIsNamedAndAllAreAborted) {
  Pair pair;
  pair.Start();
  pair.bench.Do(event::RanksJoined{pair.a, pair.attempt, {0, 1}});  // 1 is not its to tell
  pair.bench.Pass(seconds(301), {pair.a, pair.b});
  EXPECT_FALSE(pair.bench.Take<message::Abort>(pair.a).empty());
  ASSERT_FALSE(pair.bench.Take<message::Abort>(pair.b).empty());
  pair.bench.Do(pair.bench.MakeReport(pair.a, pair.attempt, {0}, Outcome::kFail, "join_timeout"));
  pair.bench.Do(pair.bench.MakeReport(pair.b, pair.attempt, {1}, Outcome::kFail, "join_timeout"));
  const AttemptRow row = pair.bench.rows.attempts.at(pair.attempt);
  EXPECT_EQ(row.outcome, Outcome::kFail);
  EXPECT_EQ(row.reason, reason::kJoinTimeout);
  EXPECT_THAT(row.message, HasSubstr("GPU-n2-0 of n2"));
  EXPECT_THAT(row.message, testing::Not(HasSubstr("GPU-n1-0")));
  EXPECT_FALSE(row.counted);  // infrastructure: once more
}

TEST(GangStart, RefusalOfOneReleasesAllAndIsOfferedAgainLater) {
  Pair pair;
  auto first = pair.bench.Take<message::Prepare>(pair.a);
  pair.bench.Do(event::GangReady{pair.a, first[0].attempt, "10.0.0.1:4000"});
  pair.bench.Do(event::GangRefused{pair.b, first[0].attempt, "gpu_busy", "held by pid 7"});
  EXPECT_THAT(pair.bench.Take<message::Abort>(pair.a), SizeIs(1));
  EXPECT_THAT(pair.bench.Take<message::Prepare>(pair.a), SizeIs(0));
  EXPECT_THAT(pair.bench.View(pair.run).waiting_for, HasSubstr("held by pid 7"));
  EXPECT_TRUE(pair.bench.rows.attempts.empty());
  pair.bench.Pass(seconds(2), {pair.a, pair.b});
  EXPECT_THAT(pair.bench.Take<message::Prepare>(pair.a), SizeIs(1));
}

TEST(GangStart, SilenceOnPrepareReleasesTheGang) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)});
  EXPECT_THAT(bench.Take<message::Prepare>(session), SizeIs(1));
  bench.Pass(seconds(20), {session});
  EXPECT_FALSE(bench.Take<message::Abort>(session).empty());
  EXPECT_FALSE(bench.Take<message::Prepare>(session).empty());
}

// A gang over two nodes gets them although single cells of another run want each as it comes free.
TEST(GangStart, GangIsNotStarvedBySmallCells) {
  Bench bench;
  const SessionHandle a = bench.Hello(MakeNode("n1"));
  const SessionHandle b = bench.Hello(MakeNode("n2"));
  bench.Pass(seconds(2));
  bench.Submit({MakeSpec(0)}, 100);
  std::string on_a = bench.StartOn(a), on_b = bench.StartOn(b);
  const std::string gang_run = bench.Submit({TwoNodes()});
  int before = 0;
  for (; before < 10; ++before) {
    // They end in turn, so that both nodes are never free by chance.
    if (!on_a.empty()) bench.Report(a, on_a);
    on_a = bench.StartOn(a);
    if (!bench.View(gang_run).active.empty()) break;
    if (!on_b.empty()) bench.Report(b, on_b);
    if (!bench.View(gang_run).active.empty()) break;
    on_b = bench.StartOn(b);
  }
  EXPECT_LT(before, 3);
  EXPECT_THAT(bench.View(gang_run).active, SizeIs(1));
}

TEST(GangStart, Case20IsNeverOfDifferentCards) {
  Bench bench;
  bench.Hello(MakeNode("n1", "V100"));
  bench.Hello(MakeNode("n2", "A100"));
  bench.Hello(MakeNode("n3", "V100"));
  bench.Pass(seconds(2));
  const std::string run = bench.Submit({TwoNodes()});
  const RunView view = bench.View(run);
  ASSERT_EQ(view.cells, 2u);
  for (uint64_t number = 1; number <= 2; ++number) {
    const CellRow cell = bench.CellOf(run, number);
    EXPECT_EQ(cell.outcome.has_value(), cell.target == "A100");
    if (cell.target == "A100") EXPECT_EQ(cell.reason, reason::kTooFewGpus);
  }
  for (const SendToAgent& send : bench.sends) {
    if (const auto* prepare = std::get_if<message::Prepare>(&send.message)) {
      for (const MemberRow& member : prepare->members) EXPECT_NE(member.node, "n2");
    }
  }
  EXPECT_THAT(view.active, SizeIs(1));
}

TEST(Refusal, OtherNodeIsOfferedTheCellAtOnce) {
  Bench bench;
  const SessionHandle a = bench.Hello(MakeNode("n1"));
  const SessionHandle b = bench.Hello(MakeNode("n2"));
  bench.Pass(seconds(2));
  bench.Submit({MakeSpec(0)});
  const auto first = bench.Take<message::Prepare>(a);
  ASSERT_THAT(first, SizeIs(1));
  bench.Do(event::GangRefused{a, first[0].attempt, "disk_full", ""});
  EXPECT_THAT(bench.Take<message::Prepare>(b), SizeIs(1));
}

// Case 44: after refusals in a row the node rests; one good probe makes it as good as any.
TEST(Refusal, NodeRestsAfterSomeInARowAndAProbeEndsIt) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  int refused = 0;
  for (int i = 0; i < 40 && refused < 5; ++i) {
    for (const auto& prepare : bench.Take<message::Prepare>(session)) {
      bench.Do(event::GangRefused{session, prepare.attempt, "disk_full", "0 bytes left"});
      ++refused;
    }
    bench.Pass(seconds(1), {session});
  }
  ASSERT_EQ(refused, 5);
  EXPECT_EQ(bench.state->Agents()[0].state, "resting");
  bench.Pass(seconds(50), {session});
  EXPECT_THAT(bench.Take<message::Prepare>(session), SizeIs(0));
  bench.Pass(seconds(12), {session});
  const std::string attempt = bench.StartOn(session);
  ASSERT_NE(attempt, "");
  bench.Do(event::RanksJoined{session, attempt, {0}});
  EXPECT_EQ(bench.state->Agents()[0].state, "up");
  bench.Report(session, attempt);
  EXPECT_EQ(bench.View(run).outcomes.at("ok"), 1u);
}

// It heartbeats, and answers no Prepare: what comes then goes to the node that works, though that
// was used more.
TEST(Refusal, NodeThatAnswersNoPrepareIsAskedAfterEveryOther) {
  Bench bench;
  const SessionHandle silent = bench.Hello(MakeNode("n1"));
  const SessionHandle works = bench.Hello(MakeNode("n2"));
  bench.Pass(seconds(2), {silent, works});
  const std::string run = bench.Submit({MakeSpec(0)});
  ASSERT_THAT(bench.Take<message::Prepare>(silent), SizeIs(1));
  bench.Pass(seconds(15), {silent, works});  // the time for an answer; it rests for a second now
  bench.Report(works, bench.StartOn(works));
  EXPECT_EQ(bench.View(run).outcomes.at("ok"), 1u);
  bench.Submit({MakeSpec(0)}, 3);
  EXPECT_EQ(bench.Drain(works), 3);
  bench.Pass(seconds(5), {silent, works});  // its rest is over
  bench.Submit({MakeSpec(0)});
  EXPECT_THAT(bench.Take<message::Prepare>(silent), SizeIs(0));
  EXPECT_THAT(bench.Take<message::Prepare>(works), SizeIs(1));
}

TEST(Refusal, CellThatNobodyEverStartsFailsInTheEnd) {
  CoordinatorTimes times;
  times.refusals_to_fail = 8;
  Bench bench(times);
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  for (int i = 0; i < 1000 && bench.View(run).state != RunState::kDone; ++i) {
    for (const auto& prepare : bench.Take<message::Prepare>(session)) {
      bench.Do(event::GangRefused{session, prepare.attempt, "stack_missing", "gone"});
    }
    bench.Pass(seconds(1), {session});
  }
  EXPECT_EQ(bench.CellOf(run, 1).outcome, Outcome::kFail);
  EXPECT_EQ(bench.CellOf(run, 1).reason, reason::kStartFailed);
}

// Case 2: one rank out of memory decides at once, is named, and its peers are told to stop.
TEST(Report, OutOfMemoryOfOneRankEndsTheGangAndNamesRankAndGpu) {
  Pair pair;
  pair.Start();
  pair.bench.Do(
      pair.bench.MakeReport(pair.b, pair.attempt, {1}, Outcome::kMemLimit, "out_of_memory"));
  ASSERT_THAT(pair.bench.Take<message::Abort>(pair.a), SizeIs(1));
  pair.bench.Do(pair.bench.MakeReport(pair.a, pair.attempt, {0}, Outcome::kFail, "crash"));
  const CellRow cell = pair.bench.CellOf(pair.run, 1);
  EXPECT_EQ(cell.outcome, Outcome::kMemLimit);
  EXPECT_THAT(cell.message, HasSubstr("rank 1 on GPU-n2-0"));
  EXPECT_THAT(pair.bench.Take<message::ReportAck>(pair.a), SizeIs(1));
  EXPECT_THAT(pair.bench.Take<message::ReportAck>(pair.b), SizeIs(1));
}

TEST(Report, IsNotAcknowledgedBeforeTheGangsLastOne) {
  Pair pair;
  pair.Start();
  pair.bench.Do(pair.bench.MakeReport(pair.a, pair.attempt, {0}));
  EXPECT_THAT(pair.bench.Take<message::ReportAck>(pair.a), SizeIs(0));
  pair.bench.Do(pair.bench.MakeReport(pair.b, pair.attempt, {1}));
  EXPECT_THAT(pair.bench.Take<message::ReportAck>(pair.a), SizeIs(1));
  EXPECT_EQ(pair.bench.CellOf(pair.run, 1).outcome, Outcome::kOk);
}

TEST(Report, SentTwiceIsAcknowledgedAndStoredOnce) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)}, 2);
  const std::string attempt = bench.StartOn(session);
  bench.Report(session, attempt);
  bench.Report(session, attempt, Outcome::kFail, reason::kCrash);
  EXPECT_THAT(bench.Take<message::ReportAck>(session), SizeIs(2));
  EXPECT_EQ(bench.rows.attempts.at(attempt).outcome, Outcome::kOk);
  EXPECT_FALSE(bench.rows.attempts.at(attempt).late);
}

TEST(Retry, FailOfTheRunnerIsFinalAndOfTheInfrastructureIsTriedOnce) {
  for (const bool infrastructure : {false, true}) {
    Bench bench;
    const SessionHandle session = bench.Hello(MakeNode("n1"));
    const std::string run = bench.Submit({MakeSpec(0)});
    const int attempts = bench.Drain(session, Outcome::kFail,
                                     infrastructure ? reason::kStartFailed : reason::kCrash);
    EXPECT_EQ(attempts, infrastructure ? 2 : 1);
    EXPECT_EQ(bench.View(run).state, RunState::kDone);
    int counted = 0;
    for (const AttemptRow& row : bench.AttemptsOf(run)) counted += row.counted;
    EXPECT_EQ(counted, 1);
  }
}

TEST(Retry, GoesElsewhereIfThereIsAnElsewhere) {
  Bench bench;
  const SessionHandle a = bench.Hello(MakeNode("n1"));
  const SessionHandle b = bench.Hello(MakeNode("n2"));
  bench.Pass(seconds(2));
  bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(a);
  ASSERT_NE(attempt, "");
  bench.Report(a, attempt, Outcome::kHung, reason::kNoProgress);
  EXPECT_THAT(bench.Take<message::Prepare>(a), SizeIs(0));
  EXPECT_THAT(bench.Take<message::Prepare>(b), SizeIs(1));
}

// Cases 22 and 46: the limit of a cell ends it, whatever its runner does.
TEST(Limits, CellOverItsTimeIsAbortedAsTimeoutAndTriedOnceMore) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  Spec spec = MakeSpec(0);
  spec.limits.cell_seconds = 60;
  const std::string run = bench.Submit({spec});
  for (int i = 0; i < 2; ++i) {
    const std::string attempt = bench.StartOn(session);
    ASSERT_NE(attempt, "");
    bench.Do(event::RanksJoined{session, attempt, {0}});
    bench.Pass(seconds(66), {session});
    const auto aborts = bench.Take<message::Abort>(session);
    ASSERT_FALSE(aborts.empty());
    EXPECT_EQ(aborts[0].outcome, Outcome::kTimeout);
    bench.Report(session, attempt, Outcome::kFail, reason::kCrash);
  }
  EXPECT_EQ(bench.CellOf(run, 1).outcome, Outcome::kTimeout);
  EXPECT_EQ(bench.CellOf(run, 1).reason, reason::kCellLimit);
}

TEST(Limits, SilenceOfAJoinedGangIsHung) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  Spec spec = MakeSpec(0);
  spec.limits.no_step_seconds = 30;
  bench.Submit({spec});
  const std::string attempt = bench.StartOn(session);
  bench.Do(event::RanksJoined{session, attempt, {0}});
  bench.Pass(seconds(80), {session});
  bench.Do(event::Progress{session, attempt, "measure", 1, 0, 0});
  bench.Pass(seconds(80), {session});
  EXPECT_THAT(bench.Take<message::Abort>(session), SizeIs(0));
  bench.Pass(seconds(11), {session});
  const auto aborts = bench.Take<message::Abort>(session);
  ASSERT_FALSE(aborts.empty());
  EXPECT_EQ(aborts[0].outcome, Outcome::kHung);
}

// Case 14: two nodes with one name.
TEST(Names, SecondAgentOfALiveNameIsRefusedWithBothAddresses) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  NodeInventory clone = MakeNode("n1", "V100");
  clone.devices[0].uuid = "GPU-other";
  const SessionHandle second = bench.Hello(clone, "clone");
  const auto refused = bench.Take<message::Refuse>(second);
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_EQ(refused[0].reason, "duplicate_node");
  EXPECT_FALSE(refused[0].retry);
  EXPECT_THAT(refused[0].message, HasSubstr("10.0.0.1:5000"));
  EXPECT_THAT(refused[0].message, HasSubstr("10.0.0.2:5000"));
  EXPECT_EQ(bench.closed, std::vector<SessionHandle>{second});
  EXPECT_EQ(bench.state->Agents()[0].cards[0], "RTX 3090");
  // The reconnect of the real one is accepted while its old stream still looks open.
  const SessionHandle third = bench.Hello(MakeNode("n1"));
  EXPECT_THAT(bench.Take<message::Welcome>(third), SizeIs(1));
  EXPECT_EQ(bench.closed.back(), first);
  bench.Do(event::AgentGone{first});  // of the older session: changes nothing
  EXPECT_EQ(bench.state->Agents()[0].state, "up");
}

TEST(Names, RestartedAgentOfTheSameMachineIsTakenAsSoonAsTheFirstIsGone) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  bench.Do(event::AgentGone{first});
  const SessionHandle second = bench.Hello(MakeNode("n1"), "new");
  EXPECT_THAT(bench.Take<message::Welcome>(second), SizeIs(1));
}

TEST(Names, OtherProtocolIsRefusedWithBothVersions) {
  Bench bench;
  event::AgentHello hello;
  hello.session = 9;
  hello.protocol = 99;
  hello.inventory = MakeNode("n1");
  bench.Do(hello);
  const auto refused = bench.Take<message::Refuse>(9);
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_THAT(refused[0].message, HasSubstr("99"));
}

TEST(Drain, StopsOffersAndLetsTheRunningCellEnd) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)}, 2);
  const std::string attempt = bench.StartOn(session);
  bench.Do(event::DrainNode{5, "n1", true});
  EXPECT_TRUE(bench.replies[5].status.ok());
  bench.Report(session, attempt);
  EXPECT_EQ(bench.StartOn(session), "");
  EXPECT_EQ(bench.state->Agents()[0].state, "drained");
  bench.Do(event::DrainNode{6, "n1", false});
  EXPECT_EQ(bench.state->Agents()[0].state, "up");
  EXPECT_NE(bench.StartOn(session), "");
}

TEST(Drain, SaysWhatTheNodeStillHolds) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(session);
  bench.Do(event::DrainNode{5, "n1", true});
  const auto drained = std::get<DrainReply>(bench.replies[5].body);
  EXPECT_EQ(drained.node, "n1");
  EXPECT_EQ(drained.state, "draining");
  ASSERT_THAT(drained.held, SizeIs(1));
  EXPECT_EQ(drained.held[0].attempt, attempt);
  EXPECT_EQ(drained.held[0].run, run);
  EXPECT_EQ(drained.held[0].cell, 1u);
  EXPECT_THAT(drained.held[0].label, HasSubstr("resnet50"));
  EXPECT_EQ(bench.state->Agents()[0].state, "draining");
  bench.Report(session, attempt);
  EXPECT_THAT(bench.state->Agents()[0].held, SizeIs(0));
}

TEST(Drain, TakesBackWhatHasNotStarted) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)});
  const auto offered = bench.Take<message::Prepare>(session);
  ASSERT_THAT(offered, SizeIs(1));
  bench.Do(event::DrainNode{5, "n1", true});
  EXPECT_EQ(std::get<DrainReply>(bench.replies[5].body).state, "drained");
  bench.Do(event::GangReady{session, offered[0].attempt, "127.0.0.1:4000"});
  EXPECT_THAT(bench.Take<message::Start>(session), SizeIs(0));
}

TEST(Drain, OutlastsTheCoordinatorAndShowsBeforeTheNodeIsBack) {
  Bench bench;
  bench.Hello(MakeNode("n1"));
  bench.Hello(MakeNode("n2"));
  bench.Do(event::DrainNode{5, "n1", true});
  bench.Boot();
  const std::vector<AgentView> agents = bench.state->Agents();
  ASSERT_THAT(agents, SizeIs(1));
  EXPECT_EQ(agents[0].inventory.node, "n1");
  EXPECT_EQ(agents[0].state, "lost");
  EXPECT_TRUE(agents[0].draining);
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  EXPECT_THAT(bench.Take<message::Drain>(session), SizeIs(1));
  bench.Submit({MakeSpec(0)});
  EXPECT_EQ(bench.StartOn(session), "");
  // Neither a new instance of the agent nor what a heartbeat says ends it.
  const SessionHandle other = bench.Hello(MakeNode("n1"), "another instance");
  bench.Beat(other);
  EXPECT_EQ(bench.state->Agents()[0].state, "drained");
  EXPECT_EQ(bench.StartOn(other), "");
}

TEST(Drain, ThatWasTakenBackWhileTheAgentWasAwayIsTakenBackThereToo) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  bench.Do(event::DrainNode{5, "n1", true});
  bench.Do(event::AgentGone{first});
  bench.Do(event::DrainNode{6, "n1", false});
  EXPECT_EQ(std::get<DrainReply>(bench.replies[6].body).state, "lost");
  event::AgentHello hello;
  hello.session = ++bench.last_session;
  hello.instance = "instance-n1";
  hello.inventory = MakeNode("n1");
  hello.draining = true;
  bench.Do(hello);
  const auto told = bench.Take<message::Drain>(hello.session);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_FALSE(told[0].on);
  EXPECT_EQ(bench.state->Agents()[0].state, "up");
}

TEST(Drain, OfANodeThatIsAwayWaitsForIt) {
  Bench bench;
  bench.Do(event::AgentGone{bench.Hello(MakeNode("n1"))});
  bench.Do(event::DrainNode{5, "n1", true});
  EXPECT_EQ(std::get<DrainReply>(bench.replies[5].body).state, "lost");
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  bench.Submit({MakeSpec(0)});
  EXPECT_EQ(bench.StartOn(session), "");
}

TEST(Drain, OfAnUnknownNodeNamesTheNearest) {
  Bench bench;
  bench.Hello(MakeNode("node7"));
  bench.Do(event::DrainNode{5, "node8", true});
  EXPECT_EQ(bench.replies[5].status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(bench.replies[5].status.message()),
              HasSubstr("there is no node node8 (did you mean 'node7'?)"));
}

TEST(Garbage, OfAnAgentChangesNothing) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(session);
  bench.Do(event::GangReady{session, "nothing", ""});
  bench.Do(event::GangReady{999, attempt, ""});
  bench.Do(event::GangRefused{session, "nothing", "", ""});
  bench.Do(event::RanksJoined{session, attempt, {7, 4'000'000'000u}});
  bench.Do(event::Progress{session, attempt, "measure", 1, std::nan(""), -1});
  bench.Do(event::AttemptReport{});
  event::AttemptReport stray = bench.MakeReport(session, "not an id", {4'000'000'000u});
  bench.Do(stray);
  bench.Do(event::CommitDone{999, 0, 0});
  bench.Report(session, attempt);
  EXPECT_EQ(bench.CellOf(run, 1).outcome, Outcome::kOk);
}

}  // namespace
}  // namespace assay
