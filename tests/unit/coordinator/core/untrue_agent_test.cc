// What an agent says that was not asked of it, or that it cannot know, is not believed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/coordinator/core/pair.h"

namespace assay {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(UntrueAgent, AResultOfAnotherGpuThanWasOfferedIsAFailure) {
  for (const std::string& gpu : {"GPU-n1-0", "GPU-n1-1"}) {
    Bench bench;
    const SessionHandle session = bench.Hello(MakeNode("n1"));
    const std::string run = bench.Submit({MakeSpec(0)});
    event::AttemptReport report = bench.MakeReport(session, bench.StartOn(session));
    report.ranks[0].gpu_uuid = gpu;
    bench.Do(report);
    const CellRow cell = bench.CellOf(run, 1);
    if (gpu == "GPU-n1-0") {
      EXPECT_EQ(cell.outcome, Outcome::kOk);
      continue;
    }
    EXPECT_EQ(cell.outcome, Outcome::kFail);
    EXPECT_EQ(cell.reason, reason::kBadOutput);
    EXPECT_THAT(cell.message, HasSubstr("reports GPU GPU-n1-1, and was given GPU-n1-0"));
    EXPECT_FALSE(bench.rows.attempts.at(cell.counted_attempt).record.Has(Field::kThroughput));
  }
}

TEST(UntrueAgent, CancelledThatNobodyAskedForIsAFailure) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  bench.Report(session, bench.StartOn(session), Outcome::kCancelled, reason::kUserCancelled);
  const CellRow cell = bench.CellOf(run, 1);
  EXPECT_EQ(cell.outcome, Outcome::kFail);
  EXPECT_EQ(cell.reason, reason::kBadOutput);
  EXPECT_THAT(cell.message, HasSubstr("nobody had asked for"));
}

// The failure of a rank stays the cause, though its peer says that it was cancelled.
TEST(UntrueAgent, CancelledBesideAFailureHidesNoCause) {
  Pair pair;
  pair.Start();
  pair.bench.Do(pair.bench.MakeReport(pair.a, pair.attempt, {0}, Outcome::kCancelled));
  pair.bench.Do(pair.bench.MakeReport(pair.b, pair.attempt, {1}, Outcome::kFail, "crash"));
  EXPECT_EQ(pair.bench.CellOf(pair.run, 1).reason, reason::kCrash);
}

TEST(UntrueAgent, CancelledThatAUserAskedForStaysSoAlsoAfterARestart) {
  Bench bench;
  SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(session);
  event::CancelRun cancel;
  cancel.token = ++bench.last_token;
  cancel.run = run;
  bench.Do(cancel);
  const event::AttemptReport report =
      bench.MakeReport(session, attempt, {0}, Outcome::kCancelled, reason::kUserCancelled);
  bench.Boot();
  session = bench.Hello(MakeNode("n1"), "", {}, {attempt});
  event::AttemptReport spooled = report;
  spooled.session = session;
  bench.Do(spooled);
  EXPECT_EQ(bench.CellOf(run, 1).outcome, Outcome::kCancelled);
}

TEST(UntrueAgent, ALateReportOfAnotherNodesAttemptIsDroppedAndTheTrueOneTaken) {
  Bench bench;
  const SessionHandle a = bench.Hello(MakeNode("n1"));
  const SessionHandle b = bench.Hello(MakeNode("n2"));
  bench.Pass(seconds(2), {b});
  bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(a);
  event::AttemptReport report = bench.MakeReport(a, attempt);
  bench.Do(event::AgentGone{a});
  bench.Pass(seconds(50), {b});
  event::AttemptReport forged = report;
  forged.session = b;
  bench.Do(forged);
  EXPECT_THAT(bench.Take<message::ReportAck>(b), SizeIs(1));
  EXPECT_FALSE(bench.rows.attempts.at(attempt).late);
  EXPECT_EQ(bench.rows.attempts.at(attempt).outcome, Outcome::kLost);
  report.session = bench.Hello(MakeNode("n1"), "", {}, {attempt});
  bench.Do(report);
  EXPECT_TRUE(bench.rows.attempts.at(attempt).late);
  EXPECT_EQ(bench.rows.attempts.at(attempt).outcome, Outcome::kOk);
}

}  // namespace
}  // namespace assay
