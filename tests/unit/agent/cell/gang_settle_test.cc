// What a gang's GPUs run before its ranks: GangMachine's part of settling, and HeatBook.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/cell/gang_bench.h"

namespace assay {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class GangSettleTest : public GangMachineTest {
 protected:
  GangSettleTest() { thermal_ = "settled"; }
  // One whole cell of 20 s on GPU-0, from Started to its end.
  void RunCell() {
    Greet(0);
    Say(0, record::Phase{"measure"});
    Advance(seconds(20));
    Result(0, "ok");
    Gone(0, 0);
  }
  static SideResult Flat() {
    SideResult result;
    result.applies = result.done = true;
    result.seconds = 95;
    result.begin_celsius = 31;
    result.end_celsius = 66;
    result.celsius_per_second = 0.01;
    result.clock_ratio_per_second = -0.0001;
    return result;
  }
  static SideResult NotFlat(bool hopeless) {
    SideResult result;
    result.applies = true;
    result.hopeless = hopeless;
    result.seconds = 600;
    result.why = "not flat";
    return result;
  }
  void Settle(const SideResult& result) {
    ASSERT_THAT(All<gang_action::RunSide>(), SizeIs(1));
    Do(gang_event::SideEnded{kAttempt, Side::kSettle, result});
    SkipSentinel();
  }
  // As on a stack that has none.
  void SkipSentinel() {
    const auto sides = All<gang_action::RunSide>();
    if (!sides.empty() && sides.back().side == Side::kSentinel) {
      Do(gang_event::SideEnded{kAttempt, Side::kSentinel, {}});
    }
  }
  Record Telemetry() { return All<gang_action::Finish>().back().report.telemetry; }
  // Offers and starts a cell; true where it is settled first.
  bool StartsWithLoad(const PrepareOrder& order) {
    actions_.clear();
    Do(gang_event::Offered{order});
    Do(gang_event::Prepared{kAttempt, ""});
    Do(gang_event::Started{{kAttempt, "", 60}});
    const auto sides = All<gang_action::RunSide>();
    const bool load = !sides.empty() && sides[0].side == Side::kSettle;
    if (!load) SkipSentinel();
    EXPECT_EQ(All<gang_action::Spawn>().size(), load ? 0u : 1u);
    return load;
  }
};

TEST_F(GangSettleTest, AColdGpuIsSettledBeforeItsRanksAreStarted) {
  ASSERT_TRUE(StartsWithLoad(Order(1)));
  Advance(seconds(95));
  Settle(Flat());
  ASSERT_THAT(All<gang_action::Spawn>(), SizeIs(1));
  RunCell();
  const Record record = Telemetry();
  EXPECT_EQ(record.Flag(Field::kSettled), true);
  EXPECT_EQ(record.Number(Field::kSettleSeconds), 95);
  EXPECT_EQ(record.Number(Field::kSettleBeginCelsius), 31);
  EXPECT_EQ(record.Number(Field::kSettleEndCelsius), 66);
  EXPECT_EQ(record.Number(Field::kSettleCelsiusPerSecond), 0.01);
  EXPECT_EQ(record.Number(Field::kSettleClockRatioPerSecond), -0.0001);
  EXPECT_EQ(All<gang_action::Finish>()[0].report.seconds, 20);  // the cell's own
}

TEST_F(GangSettleTest, AWarmGpuIsNotSettledAgainAndOneIdleForOverThirtySecondsIs) {
  ASSERT_TRUE(StartsWithLoad(Order(1)));
  Settle(Flat());
  RunCell();
  clock_.Advance(seconds(30));
  ASSERT_FALSE(StartsWithLoad(Order(1)));
  RunCell();
  EXPECT_EQ(Telemetry().Flag(Field::kSettled), true);
  EXPECT_EQ(Telemetry().Number(Field::kSettleSeconds), 0);
  EXPECT_FALSE(Telemetry().Has(Field::kSettleEndCelsius));
  clock_.Advance(seconds(31));
  EXPECT_TRUE(StartsWithLoad(Order(1)));
}

TEST_F(GangSettleTest, OneThatIsStillMovingAtTheCapIsUnsettledUntilItWasIdle) {
  ASSERT_TRUE(StartsWithLoad(Order(1)));
  Settle(NotFlat(true));
  EXPECT_THAT(All<gang_action::Warn>(), SizeIs(1));
  RunCell();
  EXPECT_EQ(Telemetry().Flag(Field::kSettled), false);
  ASSERT_FALSE(StartsWithLoad(Order(1)));  // ten minutes more would change nothing
  RunCell();
  EXPECT_EQ(Telemetry().Flag(Field::kSettled), false);
  clock_.Advance(seconds(31));
  EXPECT_TRUE(StartsWithLoad(Order(1)));
}

// The batch of the first cell does not fit: its load leaves, as it will itself.
TEST_F(GangSettleTest, ALoadThatLeftIsTriedAgainForTheNextCell) {
  ASSERT_TRUE(StartsWithLoad(Order(1)));
  Settle(NotFlat(false));
  RunCell();
  EXPECT_EQ(Telemetry().Flag(Field::kSettled), false);
  EXPECT_TRUE(StartsWithLoad(Order(1)));
}

TEST_F(GangSettleTest, ColdCellsProcessorsAndGangsOfSeveralNodesAreNotSettled) {
  PrepareOrder cold = Order(1);
  cold.spec.thermal = "cold";
  EXPECT_FALSE(StartsWithLoad(cold));
  RunCell();
  EXPECT_FALSE(Telemetry().Has(Field::kSettled));
  PrepareOrder processor = Order(1);
  processor.members[0].gpu_uuid = "CPU-1";
  EXPECT_FALSE(StartsWithLoad(processor));
  Gone(0, 1);
  EXPECT_FALSE(Telemetry().Has(Field::kSettled));
  PrepareOrder two_nodes = Order(2);
  two_nodes.members[1].node = "other";
  EXPECT_FALSE(StartsWithLoad(two_nodes));
  Gone(0, 1);
  EXPECT_EQ(Telemetry().Flag(Field::kSettled), false);
}

// A cell that asked for a cold card leaves it warm, but nobody saw it settle.
TEST_F(GangSettleTest, ACardThatAColdCellWarmedIsSettledAllTheSame) {
  PrepareOrder cold = Order(1);
  cold.spec.thermal = "cold";
  ASSERT_FALSE(StartsWithLoad(cold));
  RunCell();
  EXPECT_TRUE(StartsWithLoad(Order(1)));
}

TEST_F(GangSettleTest, WhereNothingCanBeSettledNothingIsSaid) {
  ASSERT_TRUE(StartsWithLoad(Order(1)));
  Settle({});
  RunCell();
  EXPECT_FALSE(Telemetry().Has(Field::kSettled));
  EXPECT_FALSE(Telemetry().Has(Field::kSettleSeconds));
}

TEST_F(GangSettleTest, MeanwhileTheCoordinatorIsToldAndNoLimitOfTheCellRuns) {
  ASSERT_TRUE(StartsWithLoad(Order(1)));
  ASSERT_THAT(Sent<GangProgress>(), SizeIs(1));
  EXPECT_EQ(Sent<GangProgress>()[0].phase, "settle");
  for (int i = 0; i < 400; ++i) AdvanceToDeadline();
  EXPECT_EQ(Sent<GangProgress>().size(), 401u);
  EXPECT_THAT(Stopped(), IsEmpty());
  EXPECT_THAT(All<gang_action::StopSide>(), IsEmpty());
  Settle(Flat());
  Advance(seconds(119));  // limits.no_step_seconds counts from here
  EXPECT_THAT(Stopped(), IsEmpty());
}

TEST_F(GangSettleTest, AnAbortMeanwhileEndsTheLoadAndReportsWhoEndedIt) {
  ASSERT_TRUE(StartsWithLoad(Order(2)));
  Do(gang_event::Aborted{{kAttempt, Outcome::kCancelled, std::string(reason::kUserCancelled)}});
  EXPECT_THAT(All<gang_action::StopSide>(), SizeIs(1));
  EXPECT_THAT(All<gang_action::Finish>(), IsEmpty());  // its processes are alive
  Settle(NotFlat(false));
  EXPECT_THAT(All<gang_action::Spawn>(), IsEmpty());
  ASSERT_THAT(All<gang_action::Finish>()[0].report.ranks, SizeIs(2));
  EXPECT_EQ(Report(0).outcome, Outcome::kCancelled);
  EXPECT_FALSE(Report(1).joined);
  EXPECT_THAT(machine_.HeldAttempts(), IsEmpty());
}

TEST_F(GangSettleTest, ALostLeaseMeanwhileEndsTheLoadToo) {
  ASSERT_TRUE(StartsWithLoad(Order(1)));
  Do(gang_event::LeaseEnded{});
  EXPECT_THAT(All<gang_action::StopSide>(), SizeIs(1));
  Settle(NotFlat(false));
  EXPECT_EQ(Report(0).outcome, Outcome::kLost);
  EXPECT_THAT(Report(0).message, HasSubstr("lease"));
}

}  // namespace
}  // namespace assay
