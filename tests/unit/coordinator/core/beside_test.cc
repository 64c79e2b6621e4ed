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
  Settle(seconds(900));
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

}  // namespace
}  // namespace assay
