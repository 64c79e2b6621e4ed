#include "agent/cell/gang_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include "tests/unit/agent/cell/gang_bench.h"

namespace assay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// --- offers

TEST_F(GangMachineTest, AnOfferAcquiresAndAnswersReadyWithTheEndpoint) {
  Do(gang_event::Offered{Order(2)});
  ASSERT_THAT(All<gang_action::Acquire>(), SizeIs(1));
  EXPECT_THAT(All<gang_action::Acquire>()[0].ranks, SizeIs(2));
  EXPECT_THAT(Sent<GangReady>(), IsEmpty());
  Do(gang_event::Prepared{kAttempt, "127.0.0.1:9"});
  EXPECT_THAT(Sent<GangReady>(), ElementsAre(GangReady{kAttempt, "127.0.0.1:9"}));
  EXPECT_THAT(machine_.HeldAttempts(), ElementsAre(kAttempt));
}

TEST_F(GangMachineTest, AnOfferSaidTwiceIsAnsweredTwiceAndAcquiredOnce) {
  Do(gang_event::Offered{Order(1)});
  Do(gang_event::Prepared{kAttempt, ""});
  Do(gang_event::Offered{Order(1)});
  EXPECT_THAT(All<gang_action::Acquire>(), SizeIs(1));
  EXPECT_THAT(Sent<GangReady>(), SizeIs(2));
}

TEST_F(GangMachineTest, ARefusalNamesItsReasonAndHoldsNothing) {
  Do(gang_event::Offered{Order(1)});
  Do(gang_event::PrepareFailed{kAttempt, refusal::kGpuBusy, "GPU-0 is in use"});
  ASSERT_THAT(Sent<GangRefused>(), SizeIs(1));
  EXPECT_EQ(Sent<GangRefused>()[0].reason, "gpu_busy");
  EXPECT_THAT(machine_.HeldAttempts(), IsEmpty());
}

// Case 10.
TEST_F(GangMachineTest, Case10TheSameGpuTwiceIsRefusedWithItsUuid) {
  PrepareOrder order = Order(2);
  order.members[1].gpu_uuid = order.members[0].gpu_uuid;
  Do(gang_event::Offered{order});
  ASSERT_THAT(Sent<GangRefused>(), SizeIs(1));
  EXPECT_THAT(Sent<GangRefused>()[0].message, HasSubstr("GPU-0"));
  EXPECT_THAT(All<gang_action::Acquire>(), IsEmpty());
}

TEST_F(GangMachineTest, AnAttemptIdThatIsAPathIsRefused) {
  PrepareOrder order = Order(1);
  order.attempt = "../../etc/x";
  Do(gang_event::Offered{order});
  EXPECT_THAT(Sent<GangRefused>(), SizeIs(1));
  EXPECT_THAT(machine_.HeldAttempts(), IsEmpty());
}

TEST_F(GangMachineTest, OnlyTheRanksOfThisNodeAreLocal) {
  PrepareOrder order = Order(4);
  order.members[0].node = order.members[1].node = "other";
  Do(gang_event::Offered{order});
  ASSERT_THAT(All<gang_action::Acquire>(), SizeIs(1));
  const auto ranks = All<gang_action::Acquire>()[0].ranks;
  ASSERT_THAT(ranks, SizeIs(2));
  EXPECT_EQ(ranks[0].rank, 2u);
  EXPECT_EQ(ranks[1].gpu_uuid, "GPU-3");
}

TEST_F(GangMachineTest, ADrainingNodeRefusesUntilTheDrainEnds) {
  Do(gang_event::DrainSet{true});
  Do(gang_event::Offered{Order(1)});
  EXPECT_EQ(Sent<GangRefused>().at(0).reason, "draining");
  Do(gang_event::DrainSet{false});
  Do(gang_event::Offered{Order(1)});
  EXPECT_THAT(All<gang_action::Acquire>(), SizeIs(1));
}

TEST_F(GangMachineTest, AnOfferThatIsNeverStartedIsGivenUp) {
  Do(gang_event::Offered{Order(1)});
  Do(gang_event::Prepared{kAttempt, ""});
  AdvanceToDeadline();
  EXPECT_THAT(All<gang_action::Release>(), SizeIs(1));
  EXPECT_THAT(machine_.HeldAttempts(), IsEmpty());
  Do(gang_event::Started{{kAttempt, "", 60}});
  EXPECT_THAT(All<gang_action::Spawn>(), IsEmpty());
  EXPECT_THAT(Sent<GangRefused>(), SizeIs(1));
}

TEST_F(GangMachineTest, AnAbortWhileAcquiringLetsGoOfWhatComesLater) {
  Do(gang_event::Offered{Order(1)});
  Do(gang_event::Aborted{{kAttempt, Outcome::kCancelled, ""}});
  Do(gang_event::Prepared{kAttempt, ""});
  EXPECT_THAT(All<gang_action::Release>(), SizeIs(2));
  EXPECT_THAT(Sent<GangReady>(), IsEmpty());
}

// --- running

TEST_F(GangMachineTest, AnOkResultAndExitMakeAnOkReport) {
  Run(1);
  Say(0, record::Hello{1, "assay-train", "0.1.0", 1, "GPU-0"});
  Say(0, record::Joined{});
  EXPECT_EQ(Sent<RanksJoined>().at(0).ranks, std::vector<uint32_t>{0});
  Say(0, record::Phase{"measure"});
  Say(0, record::Phase{"finish"});
  EXPECT_THAT(All<gang_action::WindowBegin>(), SizeIs(1));
  EXPECT_THAT(All<gang_action::WindowEnd>(), SizeIs(1));
  clock_.Advance(seconds(3));
  Result(0, "ok");
  Gone(0, 0);
  const RankReport report = Report(0);
  EXPECT_EQ(report.outcome, Outcome::kOk);
  EXPECT_TRUE(report.joined);
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(All<gang_action::Finish>()[0].report.cell, 7u);
  EXPECT_DOUBLE_EQ(All<gang_action::Finish>()[0].report.seconds, 3);
  EXPECT_THAT(machine_.HeldAttempts(), IsEmpty());
  EXPECT_FALSE(machine_.NextDeadline().has_value());
}

// Case 2.
TEST_F(GangMachineTest, Case2OneRankOutOfMemoryEndsTheOthersWithinSecondsAndNamesIt) {
  Run(2);
  Result(1, "mem_limit", "out_of_memory", "CUDA out of memory");
  Gone(1, 3);
  EXPECT_THAT(Stopped(), IsEmpty());
  const BootTime failed = clock_.Now();
  AdvanceToDeadline();
  EXPECT_LE(clock_.Now() - failed, seconds(10));
  EXPECT_THAT(Stopped(), ElementsAre(0u));
  Gone(0, -1, SIGTERM);
  EXPECT_EQ(Report(0).outcome, Outcome::kMemLimit);
  EXPECT_THAT(Report(0).message, HasSubstr("rank 1 on GPU-1"));
  EXPECT_EQ(Report(1).outcome, Outcome::kMemLimit);
}

TEST_F(GangMachineTest, ACrashThatFollowsAnotherRanksFailureIsBookedToTheCause) {
  Run(2);
  Result(1, "mem_limit", "out_of_memory", "full");
  Gone(0, -1, SIGABRT, "NCCL error: remote process exited");
  Gone(1, 3);
  EXPECT_EQ(Report(0).outcome, Outcome::kMemLimit);
  EXPECT_EQ(Report(0).signal, SIGABRT);
}

// Case 22 and 16.
TEST_F(GangMachineTest, Case22ASilentRankIsHungAndTheCellEnds) {
  Run(2);
  Say(0, record::Phase{"warmup"});
  Advance(seconds(119));
  EXPECT_THAT(Stopped(), IsEmpty());
  Advance(seconds(1));
  EXPECT_THAT(Stopped(), ElementsAre(0u, 1u));
  Gone(0, -1, SIGKILL);
  Gone(1, -1, SIGKILL);
  EXPECT_EQ(Report(0).outcome, Outcome::kHung);
  EXPECT_EQ(Report(0).reason, reason::kNoProgress);
  EXPECT_THAT(Report(0).message, HasSubstr("IOMMU"));
}

TEST_F(GangMachineTest, EveryRecordIsASignOfLife) {
  Run(1);
  for (int i = 0; i < 5; ++i) {
    Advance(seconds(100));
    Say(0, record::Progress{i, 1.0, 1.0});
  }
  EXPECT_THAT(Stopped(), IsEmpty());
}

TEST_F(GangMachineTest, Case46TheCellLimitEndsAWorkerThatKeepsTalking) {
  Run(1);
  for (int i = 0; i < 8; ++i) {
    Advance(seconds(100));
    Say(0, record::Progress{i, 1.0, 1.0});
  }
  EXPECT_THAT(Stopped(), IsEmpty());
  Advance(seconds(100));  // 900 s, not more
  EXPECT_THAT(Stopped(), ElementsAre(0u));
  Gone(0, -1, SIGKILL);
  EXPECT_EQ(Report(0).outcome, Outcome::kTimeout);
  EXPECT_EQ(Report(0).reason, reason::kCellLimit);
}

TEST_F(GangMachineTest, AResultStandsThoughTheProcessHangsAfterIt) {
  Run(1);
  Greet(0);
  Result(0, "ok");
  AdvanceToDeadline();
  EXPECT_THAT(Stopped(), ElementsAre(0u));
  Gone(0, -1, SIGKILL);
  EXPECT_EQ(Report(0).outcome, Outcome::kOk);
}

TEST_F(GangMachineTest, GarbageEndsTheRankAsBadOutput) {
  Run(1);
  Do(gang_event::RankBroke{kAttempt, 0, "not JSON"});
  EXPECT_THAT(Stopped(), ElementsAre(0u));
  Gone(0, -1, SIGTERM);
  EXPECT_EQ(Report(0).reason, reason::kBadOutput);
  EXPECT_EQ(Report(0).message, "not JSON");
}

TEST_F(GangMachineTest, ARecordAfterTheResultIsBadOutput) {
  Run(1);
  Greet(0);
  Result(0, "ok");
  Say(0, record::Progress{1, {}, {}});
  Gone(0, 0);
  EXPECT_EQ(Report(0).reason, reason::kBadOutput);
  EXPECT_THAT(Report(0).message, HasSubstr("after its result"));
}

// Who does not say which device it opened, or that its gang came together, measured nothing known.
TEST_F(GangMachineTest, AnOkResultWithoutHelloOrJoinedIsBadOutput) {
  const auto ends_without = [&](const std::string& what, std::vector<record::Parsed> said) {
    actions_.clear();
    Run(1);
    for (record::Parsed& record : said) Say(0, std::move(record));
    Result(0, "ok");
    Gone(0, 0);
    EXPECT_EQ(Report(0).reason, reason::kBadOutput);
    EXPECT_THAT(Report(0).message, HasSubstr("without '" + what + "'"));
  };
  ends_without("hello with its device", {record::Joined{}});
  ends_without("hello with its device",
               {record::Hello{1, "assay-train", "0.1.0", 1, ""}, record::Joined{}});
  ends_without("joined", {record::Hello{1, "assay-train", "0.1.0", 1, "GPU-0"}});
}

// All of it may lie in the pipe before the first SIGTERM arrives.
TEST_F(GangMachineTest, AnOkResultBehindABrokenRecordDoesNotCount) {
  const auto other_device = record::Hello{1, "assay-train", "0.1.0", 1, "GPU-9"};
  const auto other_protocol = record::Hello{2, "assay-train", "0.1.0", 1, "GPU-0"};
  for (const record::Hello& hello : {other_device, other_protocol}) {
    actions_.clear();
    Run(1);
    Say(0, hello);
    Greet(0);
    Result(0, "ok");
    Gone(0, 0);
    EXPECT_EQ(Report(0).outcome, Outcome::kFail);
    EXPECT_EQ(Report(0).reason, reason::kBadOutput);
  }
}

TEST_F(GangMachineTest, RecordsClosedEarlyAreBadOutputUnlessTheExitComesFirst) {
  Run(2);
  Do(gang_event::RecordsClosed{kAttempt, 0});
  Do(gang_event::RecordsClosed{kAttempt, 1});
  Gone(1, -1, SIGSEGV);
  AdvanceToDeadline();
  Gone(0, -1, SIGKILL);
  EXPECT_EQ(Report(1).reason, reason::kCrash);
}

TEST_F(GangMachineTest, ClosedRecordsOfAProcessThatGoesOnEndIt) {
  Run(1);
  Do(gang_event::RecordsClosed{kAttempt, 0});
  AdvanceToDeadline();
  EXPECT_THAT(Stopped(), ElementsAre(0u));
  Gone(0, -1, SIGKILL);
  EXPECT_EQ(Report(0).reason, reason::kBadOutput);
}

// Case 7.
TEST_F(GangMachineTest, Case7ARunnerThatOpenedAnotherGpuIsStopped) {
  Run(1);
  Say(0, record::Hello{1, "assay-train", "0.1.0", 1, "GPU-9"});
  EXPECT_THAT(Stopped(), ElementsAre(0u));
  Gone(0, -1, SIGTERM);
  EXPECT_THAT(Report(0).message, HasSubstr("GPU-9"));
}

TEST_F(GangMachineTest, ARankThatCannotBeStartedFailsAsInfrastructure) {
  Run(1);
  Do(gang_event::SpawnFailed{kAttempt, 0, "no such program"});
  EXPECT_EQ(Report(0).reason, reason::kStartFailed);
}

TEST_F(GangMachineTest, ProgressIsSentAtMostTwiceASecondAndTheNewestIsNotLost) {
  Run(1);
  for (int i = 0; i < 100; ++i) {
    Say(0, record::Progress{i, 1.0, 1.0});
    Advance(milliseconds(10));
  }
  EXPECT_LE(Sent<GangProgress>().size(), 3u);
  Advance(kProgressInterval);
  EXPECT_EQ(Sent<GangProgress>().back().step, 99u);
}

// --- ends from outside

TEST_F(GangMachineTest, AnAbortStopsAllRanksAndItsOutcomeStands) {
  Run(2);
  Do(gang_event::Welcomed{seconds(2), {}});
  Do(gang_event::Aborted{{kAttempt, Outcome::kCancelled, "user_cancelled"}});
  EXPECT_THAT(Stopped(), ElementsAre(0u, 1u));
  EXPECT_EQ(All<gang_action::StopRank>()[0].grace, seconds(2));
  Result(0, "fail", "runner_error", "interrupted");  // last words after SIGTERM
  Gone(0, 1);
  Gone(1, -1, SIGTERM);
  EXPECT_EQ(Report(0).outcome, Outcome::kCancelled);
  EXPECT_EQ(Report(1).outcome, Outcome::kCancelled);
}

TEST_F(GangMachineTest, TheEndOfTheLeaseEndsEveryGang) {
  Run(1);
  Do(gang_event::LeaseEnded{});
  Gone(0, -1, SIGTERM);
  EXPECT_EQ(Report(0).outcome, Outcome::kLost);
  EXPECT_EQ(Report(0).reason, reason::kAgentLost);
}

TEST_F(GangMachineTest, AfterWelcomeWhatMayBeLostIsSaidAgain) {
  Run(2);
  Say(1, record::Joined{});
  actions_.clear();
  Do(gang_event::Welcomed{seconds(5), {}});
  EXPECT_EQ(Sent<RanksJoined>().at(0).ranks, std::vector<uint32_t>{1});
}

TEST_F(GangMachineTest, AttemptsThatTheCoordinatorDoesNotWantAreEnded) {
  Run(1);
  Do(gang_event::Welcomed{seconds(5), {kAttempt, "01OTHER"}});
  EXPECT_THAT(Stopped(), ElementsAre(0u));
}

TEST_F(GangMachineTest, ShutdownEndsGangsAndRefusesOffers) {
  Run(1);
  Do(gang_event::Shutdown{});
  EXPECT_THAT(Stopped(), ElementsAre(0u));
  PrepareOrder order = Order(1);
  order.attempt = "01OTHER";
  Do(gang_event::Offered{order});
  EXPECT_EQ(Sent<GangRefused>().at(0).reason, "draining");
}

TEST_F(GangMachineTest, LimitsThatMakeNoSenseAreReplaced) {
  PrepareOrder order = Order(1);
  order.spec.limits = {.cell_seconds = -1, .no_step_seconds = 1e300};
  order.prepare_seconds = std::numeric_limits<double>::quiet_NaN();
  Do(gang_event::Offered{order});
  Do(gang_event::Prepared{kAttempt, ""});
  Do(gang_event::Started{{kAttempt, "", 60}});
  EXPECT_GT(*machine_.NextDeadline(), clock_.Now());
  Advance(seconds(10));
  EXPECT_THAT(Stopped(), IsEmpty());
}

TEST_F(GangMachineTest, EventsOfUnknownAttemptsAndRanksAreIgnored) {
  Run(1);
  Do(gang_event::RankRecord{"01OTHER", 0, record::Joined{}});
  Do(gang_event::RankRecord{kAttempt, 9, record::Joined{}});
  Gone(9, 0);
  Do(gang_event::Aborted{{"01OTHER", Outcome::kCancelled, ""}});
  EXPECT_THAT(Sent<RanksJoined>(), IsEmpty());
  EXPECT_THAT(Stopped(), IsEmpty());
}

}  // namespace
}  // namespace assay
