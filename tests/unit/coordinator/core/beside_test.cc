// What an agent runs beside a cell (settling its GPUs) against the coordinator's deadlines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/bench.h"

namespace assay {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

class BesideTest : public testing::Test {
 protected:
  void SetUp() override {
    Spec spec = MakeSpec(0);
    spec.limits.cell_seconds = 100;
    run_ = bench_.Submit({spec});
    attempt_ = bench_.StartOn(session_);
    ASSERT_NE(attempt_, "");
  }
  void Say(const std::string& phase) {
    event::Progress progress;
    progress.session = session_;
    progress.attempt = attempt_;
    progress.phase = phase;
    bench_.Do(progress);
  }
  void Settle(seconds time) {
    for (seconds done{0}; done < time; done += seconds(2)) {
      Say("settle");
      bench_.Pass(seconds(2), {session_});
    }
  }
  size_t Aborts() { return bench_.Take<message::Abort>(session_).size(); }

  Bench bench_;
  SessionHandle session_ = bench_.Hello(MakeNode("n1"));
  std::string run_, attempt_;
};

TEST_F(BesideTest, SettlingForTenMinutesMeetsNoDeadline) {
  Settle(seconds(600));  // over the join's 300 s and the cell's 100 s
  EXPECT_EQ(Aborts(), 0u);
  EXPECT_EQ(bench_.View(run_).active.at(0).phase, "settle");
  Say("load");
  bench_.Do(event::RanksJoined{session_, attempt_, {0}});
  bench_.Pass(seconds(95), {session_});
  EXPECT_EQ(Aborts(), 0u);
  bench_.Pass(seconds(20), {session_});
  ASSERT_EQ(Aborts(), 1u);  // the cell's own limit, from the end of settling
  bench_.Report(session_, attempt_, Outcome::kFail, reason::kRunnerError);
  EXPECT_EQ(bench_.AttemptsOf(run_).at(0).outcome, Outcome::kTimeout);
}

TEST_F(BesideTest, AnAgentThatSettlesForEverIsEnded) {
  Settle(seconds(1200));
  EXPECT_EQ(Aborts(), 0u);
  Settle(seconds(400));
  EXPECT_GE(Aborts(), 1u);
}

TEST_F(BesideTest, AfterSettlingTheJoinHasItsWholeTime) {
  Settle(seconds(500));
  Say("load");
  bench_.Pass(seconds(95), {session_});
  EXPECT_EQ(Aborts(), 0u);
}

TEST_F(BesideTest, OneWordOfSettlingStopsTheLimitsOnlyUpToThatWord) {
  Say("settle");
  bench_.Pass(seconds(110), {session_});
  EXPECT_EQ(Aborts(), 1u);
}

TEST_F(BesideTest, ASentinelBehindACellDoesNotCountAgainstItsLimit) {
  Say("load");
  bench_.Do(event::RanksJoined{session_, attempt_, {0}});
  bench_.Pass(seconds(90), {session_});
  for (int i = 0; i < 15; ++i) {
    Say("sentinel");
    bench_.Pass(seconds(2), {session_});
  }
  EXPECT_EQ(Aborts(), 0u);
}

// Which cells are told that they are the last of a session: one flag for each, in order.
std::vector<bool> ClosingFlags(const NodeInventory& node, std::vector<Spec> specs) {
  Bench bench;
  const SessionHandle session = bench.Hello(node);
  bench.Submit(std::move(specs));
  std::vector<bool> flags;
  for (std::string attempt = bench.StartOn(session); !attempt.empty();
       attempt = bench.StartOn(session)) {
    flags.push_back(bench.last_prepare.closing);
    bench.Report(session, attempt);
  }
  return flags;
}

TEST(Closing, IsTheLastCellOfTheOnlyGpu) {
  EXPECT_EQ(ClosingFlags(MakeNode("n1"), {MakeSpec(0), MakeSpec(1), MakeSpec(2)}),
            (std::vector<bool>{false, false, true}));
}

TEST(Closing, IsTheLastCellOfEachGpuOfANode) {
  EXPECT_EQ(ClosingFlags(MakeNode("n1", "RTX 3090", 2),
                         {MakeSpec(0), MakeSpec(1), MakeSpec(2), MakeSpec(3)}),
            (std::vector<bool>{false, false, true, true}));
}

TEST(Closing, IsNoneWhereNobodyAskedForASettledCard) {
  Spec cold = MakeSpec(0);
  cold.thermal = "cold";
  EXPECT_EQ(ClosingFlags(MakeNode("n1"), {cold}), std::vector<bool>{false});
  NodeInventory simulated = MakeNode("n1");
  simulated.devices[0].simulated = true;
  EXPECT_EQ(ClosingFlags(simulated, {MakeSpec(0)}), std::vector<bool>{false});
}

Spec Everywhere() {
  Spec spec = MakeSpec(0);
  spec.colocate = "all";
  return spec;
}

TEST(ColocateAll, TakesEveryGpuOfItsCardOnANodeAtOnce) {
  Bench bench;
  NodeInventory node = MakeNode("n1", "RTX 3090", 3);
  node.devices.push_back(MakeDevice("GPU-other", "V100"));
  const SessionHandle session = bench.Hello(node);
  const std::string run = bench.Submit({Everywhere()}, 1, [](event::SubmitRun& submit) {
    submit.matrix.select.all_cards = false;
    submit.matrix.select.cards = {"RTX 3090"};
  });
  const std::string attempt = bench.StartOn(session);
  ASSERT_NE(attempt, "");
  EXPECT_THAT(bench.last_prepare.members, SizeIs(3));
  EXPECT_THAT(bench.rows.attempts.at(attempt).cell_file, HasSubstr("\"world_size\": 1"));
  EXPECT_EQ(bench.View(run).cells, 1u);
}

TEST(ColocateAll, OneCellAloneLeavesTheOtherGpusIdle) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1", "RTX 3090", 3));
  bench.Submit({MakeSpec(0), MakeSpec(1)});
  ASSERT_NE(bench.StartOn(session), "");
  EXPECT_THAT(bench.last_prepare.members, SizeIs(1));
  EXPECT_THAT(bench.Take<message::Prepare>(session), SizeIs(0));  // colocate: none
}

}  // namespace
}  // namespace assay
