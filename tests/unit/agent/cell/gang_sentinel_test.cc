// The sentinel on the fake clock: GangMachine's part of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/cell/gang_bench.h"

namespace assay {
namespace {

using std::chrono::minutes;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;

class GangSentinelTest : public GangMachineTest {
 protected:
  GangSentinelTest() { thermal_ = "settled"; }
  PrepareOrder Closing() {
    PrepareOrder order = Order(1);
    order.closing = true;
    return order;
  }
  std::string digest_ = "d1";

  static SideResult Ran(std::optional<double> throughput) {
    SideResult result;
    result.applies = true;
    result.seconds = 20;
    result.done = throughput.has_value();
    result.throughput = throughput;
    return result;
  }
  std::vector<Side> Sides() {
    std::vector<Side> sides;
    for (const auto& run : All<gang_action::RunSide>()) sides.push_back(run.side);
    return sides;
  }
  // Up to what runs first beside the cell, or its ranks.
  void Begin(const PrepareOrder& order) {
    actions_.clear();
    Do(gang_event::Offered{order});
    Do(gang_event::Prepared{kAttempt, "", digest_});
    Do(gang_event::Started{{kAttempt, "", 60}});
    if (Sides() == std::vector{Side::kSettle}) {
      SideResult flat = Ran(std::nullopt);
      flat.done = true;
      Do(gang_event::SideEnded{kAttempt, Side::kSettle, flat});
    }
  }
  void Sentinel(std::optional<double> throughput) {
    ASSERT_FALSE(Sides().empty());
    ASSERT_EQ(Sides().back(), Side::kSentinel);
    Do(gang_event::SideEnded{kAttempt, Side::kSentinel, Ran(throughput)});
  }
  bool Spawned() { return !All<gang_action::Spawn>().empty(); }
  void RunRanks(std::chrono::nanoseconds time = 20s, const std::string& outcome = "ok") {
    ASSERT_TRUE(Spawned());
    Greet(0);
    Say(0, record::Phase{"measure"});
    for (auto done = 0ns; done < time; done += 10s) {
      clock_.Advance(10s);
      Say(0, record::Progress{});
    }
    Result(0, outcome);
    Gone(0, outcome == "ok" ? 0 : 1);
  }
  // A whole cell, in which a sentinel that is due says `throughput`.
  Record Cell(double throughput, std::chrono::nanoseconds time = 20s) {
    Begin(Order(1));
    if (!Spawned()) Sentinel(throughput);
    RunRanks(time);
    return All<gang_action::Finish>().back().report.telemetry;
  }
};

TEST_F(GangSentinelTest, RunsOnceAtTheStartAndStandsInEveryRecordAfterIt) {
  Begin(Order(1));
  EXPECT_FALSE(Spawned());
  EXPECT_EQ(Sides(), (std::vector{Side::kSettle, Side::kSentinel}));
  Sentinel(1000);
  RunRanks();
  const Record first = All<gang_action::Finish>()[0].report.telemetry;
  EXPECT_EQ(first.Text(Field::kSentinelSeries), kAttempt);
  EXPECT_EQ(first.Integer(Field::kSentinelIndex), 1);
  EXPECT_EQ(first.Number(Field::kSentinelBefore), 1000);
  EXPECT_FALSE(first.Has(Field::kSentinelAfter));
  Begin(Order(1));
  EXPECT_THAT(Sides(), IsEmpty());  // warm, and measured a moment ago
  RunRanks();
  EXPECT_EQ(All<gang_action::Finish>()[0].report.telemetry.Integer(Field::kSentinelIndex), 1);
}

TEST_F(GangSentinelTest, RunsAgainAfterFifteenMinutesBeforeTheNextCell) {
  Cell(1000);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(Cell(990, minutes(2)).Integer(Field::kSentinelIndex), 1) << i;
  }
  const Record later = Cell(990, minutes(2));  // began 14 min 20 s after it
  EXPECT_EQ(later.Integer(Field::kSentinelIndex), 1);
  const Record last = Cell(990);
  EXPECT_EQ(last.Integer(Field::kSentinelIndex), 2);
  EXPECT_EQ(last.Number(Field::kSentinelBefore), 990);
}

TEST_F(GangSentinelTest, RunsAgainWhereTheGpuWentCold) {
  Cell(1000);
  clock_.Advance(31s);
  EXPECT_EQ(Cell(995).Integer(Field::kSentinelIndex), 2);
}

TEST_F(GangSentinelTest, AnotherBuildUnderTheStacksNameIsAnotherSeries) {
  Cell(1000);
  digest_ = "d2";
  const Record rebuilt = Cell(1200);
  EXPECT_EQ(rebuilt.Number(Field::kSentinelBefore), 1200);
  EXPECT_EQ(rebuilt.Integer(Field::kSentinelIndex), 1);
  digest_ = "d1";
  EXPECT_EQ(Cell(1).Number(Field::kSentinelBefore), 1000);
}

TEST_F(GangSentinelTest, TheLastCellOfASessionHasOneBehindItBeforeItsReport) {
  Begin(Closing());
  Sentinel(1000);
  RunRanks();
  EXPECT_THAT(All<gang_action::Finish>(), IsEmpty());
  EXPECT_THAT(machine_.HeldAttempts(), SizeIs(1));
  EXPECT_EQ(Sent<GangProgress>().back().phase, "sentinel");
  Sentinel(970);
  ASSERT_THAT(All<gang_action::Finish>(), SizeIs(1));
  const AttemptReport report = All<gang_action::Finish>()[0].report;
  EXPECT_EQ(report.ranks.at(0).outcome, Outcome::kOk);
  EXPECT_EQ(report.telemetry.Number(Field::kSentinelBefore), 1000);
  EXPECT_EQ(report.telemetry.Number(Field::kSentinelAfter), 970);
  EXPECT_EQ(report.seconds, 20);
  EXPECT_THAT(machine_.HeldAttempts(), IsEmpty());
  // It is the reading before the next cell, too.
  EXPECT_EQ(Cell(1).Integer(Field::kSentinelIndex), 2);
}

TEST_F(GangSentinelTest, AnAbortWhileItRunsBehindACellKeepsTheCellsResult) {
  Begin(Closing());
  Sentinel(1000);
  RunRanks();
  Do(gang_event::Aborted{{kAttempt, Outcome::kCancelled, std::string(reason::kUserCancelled)}});
  EXPECT_THAT(All<gang_action::StopSide>(), SizeIs(1));
  Sentinel(std::nullopt);
  EXPECT_EQ(Report(0).outcome, Outcome::kOk);
  EXPECT_FALSE(All<gang_action::Finish>()[0].report.telemetry.Has(Field::kSentinelAfter));
}

TEST_F(GangSentinelTest, ACellWithoutAFigureHasNoneBehindIt) {
  Begin(Closing());
  Sentinel(1000);
  RunRanks(20s, "mem_limit");
  EXPECT_THAT(All<gang_action::Finish>(), SizeIs(1));
}

TEST_F(GangSentinelTest, WithoutAFigureBeforeNoneIsTakenBehind) {
  Begin(Closing());
  Sentinel(std::nullopt);
  EXPECT_THAT(All<gang_action::Warn>(), SizeIs(1));
  RunRanks();
  ASSERT_THAT(All<gang_action::Finish>(), SizeIs(1));
  EXPECT_FALSE(All<gang_action::Finish>()[0].report.telemetry.Has(Field::kSentinelSeries));
}

TEST_F(GangSentinelTest, AColdCellHasNone) {
  PrepareOrder order = Closing();
  order.spec.thermal = "cold";
  Begin(order);
  RunRanks();
  EXPECT_THAT(Sides(), IsEmpty());
  EXPECT_THAT(All<gang_action::Finish>(), SizeIs(1));
}

}  // namespace
}  // namespace assay
