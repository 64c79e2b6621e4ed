// The limit of a run, and clocks of nodes that are shown to be wrong. Cases 46 and 55.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/bench.h"

namespace assay {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class RunLimit : public testing::Test {
 protected:
  std::string Submit(int repeat) {
    return bench_.Submit({MakeSpec(0)}, repeat, [](event::SubmitRun& submit) {
      submit.matrix.select.run_limit_seconds = 60;
    });
  }

  Bench bench_;
};

TEST_F(RunLimit, EndsWhatRunsAndWhatWaitsAsTimeoutAndTriesNothingAgain) {
  const SessionHandle session = bench_.Hello(MakeNode("n1"));
  const std::string run = Submit(3);
  const std::string first = bench_.StartOn(session);
  bench_.Report(session, first);
  const std::string second = bench_.StartOn(session);
  bench_.Pass(seconds(59), {session});
  EXPECT_THAT(bench_.Take<message::Abort>(session), IsEmpty());
  bench_.Pass(seconds(1), {session});
  const auto aborts = bench_.Take<message::Abort>(session);
  ASSERT_THAT(aborts, SizeIs(1));
  EXPECT_EQ(aborts[0].attempt, second);
  EXPECT_EQ(aborts[0].outcome, Outcome::kTimeout);
  bench_.Report(session, second, Outcome::kTimeout, reason::kRunLimit);
  bench_.Pass(seconds(1), {session});
  const RunView view = bench_.View(run);
  EXPECT_TRUE(view.final);
  EXPECT_EQ(view.state, RunState::kDone);
  EXPECT_THAT(view.message, HasSubstr("not done within its run_limit, 60 s"));
  EXPECT_EQ(view.outcomes, (std::map<std::string, uint64_t>{{"ok", 1}, {"timeout", 2}}));
  for (const auto& [key, cell] : bench_.rows.cells) {
    EXPECT_EQ(cell.reason, cell.outcome == Outcome::kTimeout ? reason::kRunLimit : "");
  }
  EXPECT_EQ(bench_.StartOn(session), "");
}

TEST_F(RunLimit, CountsFromTheFirstCellAndNotFromTheSubmission) {
  const std::string run = Submit(1);
  bench_.Pass(seconds(20));
  const SessionHandle session = bench_.Hello(MakeNode("n1"));
  bench_.Pass(seconds(2), {session});
  ASSERT_NE(bench_.StartOn(session), "");
  bench_.Pass(seconds(50), {session});
  EXPECT_EQ(bench_.View(run).state, RunState::kRunning);
  EXPECT_THAT(bench_.Take<message::Abort>(session), IsEmpty());
}

TEST_F(RunLimit, TakesBackAGangThatOnlyPrepares) {
  const SessionHandle session = bench_.Hello(MakeNode("n1"));
  const std::string run = Submit(2);
  bench_.Report(session, bench_.StartOn(session));
  bench_.Pass(seconds(59), {session});
  bench_.Pass(seconds(2), {session});
  EXPECT_TRUE(bench_.View(run).final);
  EXPECT_EQ(bench_.CellOf(run, 2).outcome == Outcome::kTimeout ||
                bench_.CellOf(run, 1).outcome == Outcome::kTimeout,
            true);
  EXPECT_THAT(bench_.state->Agents()[0].held, IsEmpty());
}

// The boot clock of a process that is no more says nothing.
TEST_F(RunLimit, CountsAnewInACoordinatorThatWasStartedAnew) {
  const SessionHandle before = bench_.Hello(MakeNode("n1"));
  const std::string run = Submit(1);
  const std::string attempt = bench_.StartOn(before);
  bench_.Pass(seconds(50), {before});
  bench_.Boot();
  const SessionHandle session = bench_.Hello(MakeNode("n1"), "", {attempt});
  bench_.Pass(seconds(50), {session});
  EXPECT_EQ(bench_.View(run).state, RunState::kRunning);
  bench_.Pass(seconds(10), {session});
  EXPECT_THAT(bench_.Take<message::Abort>(session), SizeIs(1));
}

TEST(RunWithoutALimit, GoesOnForEver) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  Spec spec = MakeSpec(0);
  spec.limits.cell_seconds = 1'000'000;
  const std::string run = bench.Submit({spec});
  ASSERT_NE(bench.StartOn(session), "");
  bench.Pass(seconds(3600), {session});
  EXPECT_EQ(bench.View(run).state, RunState::kRunning);
}

class WallClocks : public testing::Test {
 protected:
  // Warnings of the node after a heartbeat whose sender's clock is so far ahead.
  std::vector<std::string> WarningsAt(int64_t ahead_ms) {
    event::Heartbeat beat;
    beat.session = session_;
    beat.wall_unix_ms = bench_.clock.WallNow().time_since_epoch().count() + ahead_ms;
    bench_.Do(beat);
    return bench_.state->Agents()[0].inventory.warnings;
  }

  Bench bench_;
  SessionHandle session_ = bench_.Hello(MakeNode("n1"));
};

TEST_F(WallClocks, ThatAreApartAreAWarningOfTheNodeUntilTheyAgree) {
  EXPECT_THAT(WarningsAt(4'000), IsEmpty());
  EXPECT_THAT(WarningsAt(3'600'000),
              testing::ElementsAre(HasSubstr("its clock is 3600 s ahead of the coordinator's")));
  EXPECT_THAT(WarningsAt(-90'000),
              testing::ElementsAre(HasSubstr("its clock is 90 s behind the coordinator's")));
  EXPECT_THAT(WarningsAt(0), IsEmpty());
}

TEST_F(WallClocks, OfAnAgentThatDoesNotSayIsNotJudged) {
  bench_.Beat(session_);
  EXPECT_THAT(bench_.state->Agents()[0].inventory.warnings, IsEmpty());
}

}  // namespace
}  // namespace assay
