// What a run's cells are bound to, how long they wait for it, and what no node can run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/bench.h"

namespace assay {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

TEST(Binding, PerCardMakesOneTargetOfEqualCardsOnTwoNodes) {
  Bench bench;
  bench.Hello(MakeNode("n1", "RTX 3090", 2));
  bench.Hello(MakeNode("n2", "RTX 3090"));
  bench.Hello(MakeNode("n3", "V100"));
  const std::string run = bench.Submit({MakeSpec(0), MakeSpec(1)}, 3);
  EXPECT_EQ(bench.View(run).cells, 12u);
}

TEST(Binding, PerNodeAndPerGpuMakeATargetOfEach) {
  Bench bench;
  bench.Hello(MakeNode("n1", "RTX 3090", 2));
  bench.Hello(MakeNode("n2", "RTX 3090"));
  const auto by = [&](Placement placement) {
    return bench
        .View(bench.Submit({MakeSpec(0)}, 1,
                           [&](event::SubmitRun& s) { s.matrix.select.placement = placement; }))
        .cells;
  };
  EXPECT_EQ(by(Placement::kPerNode), 2u);
  EXPECT_EQ(by(Placement::kPerGpu), 3u);
}

// Case 25: a bounded wait, then a message with the missing names.
TEST(Binding, CardThatNeverComesIsWaitedForAndThenItsCellsAreLostByName) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)}, 2, [](event::SubmitRun& s) {
    s.matrix.select.all_cards = false;
    s.matrix.select.cards = {"RTX 3090", "H100"};
    s.matrix.select.wait_seconds = 60;
  });
  EXPECT_EQ(bench.Drain(session), 2);
  EXPECT_EQ(bench.View(run).state, RunState::kRunning);
  EXPECT_THAT(bench.View(run).waiting_for, HasSubstr("H100"));
  bench.Pass(seconds(61), {session});
  const RunView view = bench.View(run);
  EXPECT_EQ(view.state, RunState::kDone);
  EXPECT_TRUE(view.final);
  EXPECT_EQ(view.outcomes.at("ok"), 2u);
  EXPECT_EQ(view.outcomes.at("lost"), 2u);
  EXPECT_THAT(view.message, HasSubstr("H100"));
}

TEST(Binding, RunThatFindsNothingEndsWithASentenceAndNoCells) {
  Bench bench;
  const std::string run = bench.Submit({MakeSpec(0)});
  EXPECT_EQ(bench.View(run).waiting_for, "an agent to connect");
  bench.Pass(seconds(31));
  EXPECT_EQ(bench.View(run).state, RunState::kDone);
  EXPECT_EQ(bench.View(run).cells, 0u);
  EXPECT_THAT(bench.View(run).message, HasSubstr("no agent"));
  EXPECT_EQ(bench.rows.runs.at(run).state, RunState::kDone);
}

TEST(Binding, TargetAfterTheWaitIsBoundOnlyWithLateInclude) {
  for (const bool include : {false, true}) {
    Bench bench;
    const SessionHandle session = bench.Hello(MakeNode("n1"));
    const std::string run = bench.Submit({MakeSpec(0)}, 1, [&](event::SubmitRun& s) {
      s.matrix.select.wait_seconds = 5;
      s.matrix.select.include_late = include;
    });
    ASSERT_NE(bench.StartOn(session), "");
    bench.Pass(seconds(10), {session});
    bench.Hello(MakeNode("n2", "V100"));
    bench.Pass(seconds(2), {session});
    EXPECT_EQ(bench.View(run).cells, include ? 2u : 1u);
  }
}

TEST(Binding, RunDoesNotStayOpenForTheWaitWhenAllItsCellsEnded) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit(
      {MakeSpec(0)}, 1, [](event::SubmitRun& s) { s.matrix.select.wait_seconds = 60; });
  EXPECT_EQ(bench.Drain(session), 1);
  EXPECT_EQ(bench.View(run).state, RunState::kDone);
}

TEST(Feasibility, CellThatNothingCanRunIsUnsupportedWithItsReasonAndHasNoAttempt) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0), MakeSpec(1, "alexnet")});
  EXPECT_EQ(bench.Drain(session), 1);
  EXPECT_EQ(bench.View(run).state, RunState::kDone);
  const CellRow cell = bench.CellOf(run, 2);
  EXPECT_EQ(cell.outcome, Outcome::kUnsupported);
  EXPECT_EQ(cell.reason, reason::kUnknownModel);
  EXPECT_EQ(bench.AttemptsOf(run).size(), 1u);
}

TEST(Feasibility, MoreGpusThanAnyNodeHasIsUnsupported) {
  Bench bench;
  bench.Hello(MakeNode("n1", "RTX 3090", 2));
  Spec spec = MakeSpec(0);
  spec.gpus = 4;
  const std::string run = bench.Submit({spec});
  EXPECT_EQ(bench.CellOf(run, 1).outcome, Outcome::kUnsupported);
  EXPECT_EQ(bench.CellOf(run, 1).reason, reason::kTooFewGpus);
}

TEST(Feasibility, ColocateAllIsOfOneRankAndOfWholeNodes) {
  Bench bench;
  bench.Hello(MakeNode("n1", "RTX 3090", 2));
  Spec spec = MakeSpec(0);
  spec.colocate = "all";
  spec.gpus = 2;
  EXPECT_EQ(bench.CellOf(bench.Submit({spec}), 1).reason, reason::kUnsupportedValue);
  spec.gpus = 1;
  const std::string run = bench.Submit({spec}, 1, [](event::SubmitRun& submit) {
    submit.matrix.select.placement = Placement::kPerGpu;
  });
  EXPECT_EQ(bench.CellOf(run, 1).reason, reason::kUnsupportedValue);
  spec.batch = kBatchMax;
  EXPECT_EQ(bench.CellOf(bench.Submit({spec}), 1).reason, reason::kUnsupportedValue);
}

// Case 19: a mix of versions is refused before launch, with the versions of both nodes.
TEST(Feasibility, GangOverNodesWithDifferentStacksIsRefusedWithBothVersions) {
  Bench bench;
  bench.Hello(MakeNode("n1"));
  NodeInventory other = MakeNode("n2");
  other.stacks = {MakeStack("2.7.1")};
  bench.Hello(other);
  Spec spec = MakeSpec(0);
  spec.nodes = 2;
  const std::string run = bench.Submit({spec});
  bench.Pass(seconds(2));
  const CellRow cell = bench.CellOf(run, 1);
  EXPECT_EQ(cell.outcome, Outcome::kUnsupported);
  EXPECT_EQ(cell.reason, reason::kStackMissing);
  EXPECT_THAT(cell.message, HasSubstr("2.11.0"));
  EXPECT_THAT(cell.message, HasSubstr("2.7.1"));
}

// Case 10: never two cells at once on one GPU, whatever two agents say.
TEST(Feasibility, GpuThatTwoAgentsReportBelongsToTheFirst) {
  Bench bench;
  bench.Hello(MakeNode("n1"));
  NodeInventory twin = MakeNode("n1");
  twin.node = "n2";
  bench.Hello(twin);
  const std::string run = bench.Submit({MakeSpec(0)}, 1, [](event::SubmitRun& s) {
    s.matrix.select.placement = Placement::kPerNode;
  });
  EXPECT_EQ(bench.View(run).cells, 1u);
}

TEST(Feasibility, GpuOfTwoAgentsPassesToTheOtherWhenTheFirstLeavesAndStaysThere) {
  Bench bench;
  const SessionHandle first = bench.Hello(MakeNode("n1"));
  NodeInventory twin = MakeNode("n1");
  twin.node = "n2";
  const SessionHandle second = bench.Hello(twin);
  bench.Do(event::AgentGone{first});
  bench.Pass(seconds(2), {second});
  const SessionHandle back = bench.Hello(MakeNode("n1"));
  bench.Pass(seconds(2), {second, back});
  bench.Submit({MakeSpec(0)});
  EXPECT_THAT(bench.Take<message::Prepare>(second), SizeIs(1));
  EXPECT_THAT(bench.Take<message::Prepare>(back), SizeIs(0));
}

}  // namespace
}  // namespace assay
