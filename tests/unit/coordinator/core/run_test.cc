// Users' side: submit, cancel, rerun, import, and what watchers see.
#include "coordinator/scheduler/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/unit/coordinator/core/bench.h"

namespace assay {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

TEST(Submit, IsAnsweredOnlyWhenRunAndSpecsAreDurable) {
  Bench bench;
  bench.auto_commit = false;
  event::SubmitRun submit;
  submit.token = 1;
  submit.matrix.specs = {MakeSpec(0)};
  bench.Do(submit);
  EXPECT_TRUE(bench.replies.empty());
  ASSERT_EQ(bench.uncommitted.size(), 1u);
  EXPECT_EQ(bench.uncommitted[0].batch.runs.size(), 1u);
  EXPECT_EQ(bench.uncommitted[0].batch.specs.size(), 1u);
  bench.Commit();
  ASSERT_TRUE(bench.replies.contains(1));
  EXPECT_TRUE(bench.replies[1].status.ok());
}

TEST(Submit, WithTheSameRequestIdAnswersTheSameRunAlsoAfterARestart) {
  Bench bench;
  const auto same = [](event::SubmitRun& s) {
    s.request_id = "r";
    s.digest = "d";
  };
  const std::string run = bench.Submit({MakeSpec(0)}, 1, same);
  EXPECT_EQ(bench.Submit({MakeSpec(0)}, 1, same), run);
  bench.Boot();
  EXPECT_EQ(bench.Submit({MakeSpec(0)}, 1, same), run);
  EXPECT_EQ(bench.rows.runs.size(), 1u);
}

TEST(Submit, WithARequestIdOfAnotherMatrixIsRefusedAlsoAfterItsRunHasEnded) {
  Bench bench;
  const auto first = [](event::SubmitRun& s) {
    s.request_id = "r";
    s.digest = "d";
  };
  const auto other = [](event::SubmitRun& s) {
    s.request_id = "r";
    s.digest = "e";
  };
  const std::string run = bench.Submit({MakeSpec(0)}, 1, first);
  const auto refused = [&] {
    bench.Submit({MakeSpec(1)}, 1, other);
    const Reply& reply = bench.replies[bench.last_token];
    EXPECT_EQ(reply.status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(reply.status.ToString(), HasSubstr(run));
  };
  refused();
  event::CancelRun cancel;
  cancel.run = run;
  bench.Do(cancel);
  refused();
  bench.Boot();
  refused();
  EXPECT_EQ(bench.Submit({MakeSpec(0)}, 1, first), run);
  EXPECT_EQ(bench.rows.runs.size(), 1u);
}

TEST(Submit, OfTheTextOfAnUnfinishedRunContinuesItUnlessANewOneIsForced) {
  Bench bench;
  const auto text = [](event::SubmitRun& s) { s.digest = "d"; };
  const std::string run = bench.Submit({MakeSpec(0)}, 1, text);
  EXPECT_EQ(bench.Submit({MakeSpec(0)}, 1, text), run);
  EXPECT_TRUE(std::get<SubmitReply>(bench.replies[bench.last_token].body).continued);
  EXPECT_NE(bench.Submit({MakeSpec(0)}, 1,
                         [](event::SubmitRun& s) {
                           s.digest = "d";
                           s.force_new = true;
                         }),
            run);
}

TEST(Submit, ThatFailsToBecomeDurableStopsTheCoordinatorAndIsNeverAnswered) {
  Bench bench;
  bench.auto_commit = false;
  bench.Submit({MakeSpec(0)});
  bench.Do(event::CommitFailed{"disk full"});
  ASSERT_TRUE(bench.halt.has_value());
  EXPECT_THAT(*bench.halt, HasSubstr("disk full"));
  bench.Do(event::CommitDone{1, 0, 0});
  bench.Hello(MakeNode("n1"));
  EXPECT_TRUE(bench.replies.empty());
  EXPECT_TRUE(bench.sends.empty());
}

TEST(Order, HasAllOfOneRepeatBeforeTheNextAndIsShuffledBySeed) {
  for (uint32_t a = 0; a < 50; ++a) {
    EXPECT_LT(CellOrder(1, 1, a, "x"), CellOrder(1, 2, 49 - a, "x"));
  }
  std::vector<uint32_t> one, two;
  for (uint32_t i = 0; i < 20; ++i) one.push_back(i), two.push_back(i);
  const auto by_seed = [](uint64_t seed) {
    return [seed](uint32_t a, uint32_t b) {
      return CellOrder(seed, 1, a, "x") < CellOrder(seed, 1, b, "x");
    };
  };
  std::sort(one.begin(), one.end(), by_seed(1));
  std::sort(two.begin(), two.end(), by_seed(2));
  EXPECT_NE(one, two);
  EXPECT_FALSE(std::is_sorted(one.begin(), one.end()));
}

TEST(Submit, LabelsAreTheRunsAndAContinuedRunKeepsItsOwn) {
  Bench bench;
  const auto labelled = [&](Labels labels) {
    return bench.Submit({MakeSpec(0)}, 1, [&](event::SubmitRun& s) {
      s.digest = "same";
      s.labels = std::move(labels);
    });
  };
  const auto warnings = [&] {
    return std::get<SubmitReply>(bench.replies[bench.last_token].body).warnings;
  };
  const std::string run = labelled({{"team", "cnn"}});
  EXPECT_EQ(bench.rows.runs.at(run).labels, (Labels{{"team", "cnn"}}));
  EXPECT_EQ(labelled({{"team", "cnn"}}), run);
  EXPECT_TRUE(warnings().empty());
  EXPECT_EQ(labelled({}), run);
  EXPECT_TRUE(warnings().empty());
  EXPECT_EQ(labelled({{"team", "nlp"}}), run);
  ASSERT_EQ(warnings().size(), 1u);
  EXPECT_THAT(warnings()[0], HasSubstr("team=cnn"));
  EXPECT_EQ(bench.rows.runs.at(run).labels, (Labels{{"team", "cnn"}}));
}

// Case 10: another user's attempt on the GPU is waited for, with a sentence, and is no fault of the
// node.
TEST(Busy, GpuIsAskedForAgainSoonHoweverOftenItWasBusy) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  int refused = 0;
  for (int i = 0; i < 120; ++i) {
    for (const auto& prepare : bench.Take<message::Prepare>(session)) {
      bench.Do(event::GangRefused{session, prepare.attempt, "gpu_busy", "GPU-n1-0 is in use"});
      ++refused;
    }
    bench.Pass(seconds(1), {session});
  }
  EXPECT_GE(refused, 15);
  EXPECT_EQ(bench.state->Agents()[0].state, "up");
  EXPECT_THAT(bench.View(run).waiting_for, HasSubstr("GPU-n1-0 is in use"));
  EXPECT_EQ(bench.CellOf(run, 1).outcome, std::nullopt);
}

TEST(Cancel, EndsPendingCellsAtOnceAndTheRunWhenEveryAgentReported) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)}, 3);
  const std::string attempt = bench.StartOn(session);
  bench.Do(event::CancelRun{77, run});
  EXPECT_EQ(std::get<CancelReply>(bench.replies[77].body).state, RunState::kCancelling);
  EXPECT_EQ(bench.View(run).outcomes.at("cancelled"), 2u);
  ASSERT_EQ(bench.Take<message::Abort>(session).size(), 1u);
  EXPECT_FALSE(bench.View(run).final);
  bench.Report(session, attempt, Outcome::kCancelled, reason::kUserCancelled);
  EXPECT_EQ(bench.View(run).state, RunState::kCancelled);
  EXPECT_TRUE(bench.View(run).final);
  EXPECT_EQ(bench.View(run).outcomes.at("cancelled"), 3u);
}

TEST(Cancel, KeepsAResultThatCrossedIt) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  const std::string attempt = bench.StartOn(session);
  bench.Do(event::CancelRun{77, run});
  bench.Report(session, attempt);
  EXPECT_EQ(bench.CellOf(run, 1).outcome, Outcome::kOk);
  EXPECT_EQ(bench.View(run).state, RunState::kCancelled);
}

TEST(Cancel, OfAGangThatOnlyPreparesReleasesItAndEndsTheRun) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)});
  ASSERT_EQ(bench.Take<message::Prepare>(session).size(), 1u);
  bench.Do(event::CancelRun{77, run});
  EXPECT_EQ(bench.Take<message::Abort>(session).size(), 1u);
  EXPECT_EQ(bench.View(run).state, RunState::kCancelled);
  bench.Do(event::CancelRun{78, run});
  EXPECT_EQ(std::get<CancelReply>(bench.replies[78].body).state, RunState::kCancelled);
  bench.Do(event::CancelRun{79, "nothing"});
  EXPECT_EQ(bench.replies[79].status.code(), absl::StatusCode::kNotFound);
}

TEST(Rerun, RunsFailedCellsAgainAndCountsOnlyTheNewAttempt) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0), MakeSpec(1)});
  bench.Report(session, bench.StartOn(session), Outcome::kFail, reason::kCrash);
  EXPECT_EQ(bench.Drain(session), 1);
  ASSERT_EQ(bench.View(run).state, RunState::kDone);
  bench.Do(event::Rerun{90, run, true, "again", bench.rows.Run(run), {}});
  ASSERT_TRUE(bench.replies[90].status.ok()) << bench.replies[90].status;
  EXPECT_EQ(bench.View(run).done, 1u);
  EXPECT_EQ(bench.Drain(session), 1);
  EXPECT_EQ(bench.View(run).state, RunState::kDone);
  EXPECT_EQ(bench.View(run).outcomes.at("ok"), 2u);
  int counted = 0;
  for (const AttemptRow& attempt : bench.AttemptsOf(run)) counted += attempt.counted;
  EXPECT_EQ(counted, 2);
  EXPECT_EQ(bench.AttemptsOf(run).size(), 3u);
  // The same request again, and one with an old copy of the run.
  bench.Do(event::Rerun{91, run, true, "again", std::nullopt, {}});
  EXPECT_TRUE(bench.replies[91].status.ok());
  bench.Do(event::Rerun{92, run, true, "other", bench.rows.Run(run), {}});
  EXPECT_EQ(bench.replies[92].status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Rerun, OpensACellWhoseFigureIsInvalid) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0), MakeSpec(1)});
  EXPECT_EQ(bench.Drain(session), 2);
  bench.Do(event::Rerun{90, run, true, "again", bench.rows.Run(run), {}});
  EXPECT_EQ(bench.replies[90].status.code(), absl::StatusCode::kFailedPrecondition);
  bench.Do(event::Rerun{91, run, true, "again", bench.rows.Run(run), {2}});
  ASSERT_TRUE(bench.replies[91].status.ok()) << bench.replies[91].status;
  EXPECT_EQ(bench.View(run).done, 1u);
  EXPECT_EQ(bench.Drain(session), 1);
  EXPECT_EQ(bench.AttemptsOf(run).size(), 3u);
}

TEST(Turns, NoRunWaitsForMoreThanOneGangOfEachOther) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string a = bench.Submit({MakeSpec(0)}, 4);
  const std::string b = bench.Submit({MakeSpec(0)}, 4);
  const std::string c = bench.Submit({MakeSpec(0)}, 4);
  std::vector<std::string> order;
  for (std::string attempt = bench.StartOn(session); !attempt.empty();
       attempt = bench.StartOn(session)) {
    order.push_back(bench.last_prepare.run);
    bench.Report(session, attempt);
  }
  ASSERT_EQ(order.size(), 12u);
  for (size_t i = 3; i < order.size(); ++i) EXPECT_EQ(order[i], order[i - 3]);
  EXPECT_NE(order[0], order[1]);
  EXPECT_NE(order[1], order[2]);
}

TEST(Turns, RepeatsSpreadOverTheGpusOfANodeOneCellAtATime) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1", "RTX 3090", 3));
  bench.Submit({MakeSpec(0)}, 3);
  std::set<std::string> used;
  for (int i = 0; i < 3; ++i) {
    const std::string attempt = bench.StartOn(session);
    ASSERT_NE(attempt, "");
    used.insert(bench.last_prepare.members[0].gpu_uuid);
    EXPECT_TRUE(bench.Take<message::Prepare>(session).empty());
    bench.Report(session, attempt);
  }
  EXPECT_EQ(used.size(), 3u);
}

TEST(Watch, GivesCountsActiveCellsAndEndedOnesSinceASequence) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = bench.Submit({MakeSpec(0)}, 3);
  bench.Report(session, bench.StartOn(session));
  const std::string attempt = bench.StartOn(session);
  bench.Do(event::Progress{session, attempt, "measure", 12, 812.5, 4});
  const RunView view = bench.View(run);
  EXPECT_EQ(view.cells, 3u);
  EXPECT_EQ(view.done, 1u);
  ASSERT_EQ(view.ended.size(), 1u);
  EXPECT_EQ(view.ended[0].throughput, 800);
  ASSERT_EQ(view.active.size(), 1u);
  EXPECT_EQ(view.active[0].phase, "measure");
  EXPECT_EQ(view.active[0].step, 12u);
  EXPECT_GT(view.seconds_left, 0);
  EXPECT_TRUE(bench.state->ViewOf(run, view.sequence, bench.clock.Now())->ended.empty());
  EXPECT_TRUE(bench.state->ViewOf(run, UINT64_MAX, bench.clock.Now())->ended.empty());
}

TEST(Import, IsRefusedWhileTheRunIsUnfinishedHereAndElseCounted) {
  Bench bench;
  const std::string run = bench.Submit({MakeSpec(0)});
  event::ImportRows import;
  import.token = 50;
  import.rows.runs = {bench.rows.runs.at(run)};
  bench.Do(import);
  EXPECT_EQ(bench.replies[50].status.code(), absl::StatusCode::kFailedPrecondition);
  import.token = 51;
  import.rows.runs[0].id = "01J00000000000000000000000";
  bench.auto_commit = false;
  bench.Do(import);
  EXPECT_FALSE(bench.replies.contains(51));
  bench.Do(event::CommitDone{bench.uncommitted.back().n, 3, 1});
  ASSERT_TRUE(bench.replies.contains(51));
  EXPECT_EQ(std::get<ImportReply>(bench.replies[51].body).attempts_new, 3u);
}

TEST(Import, ACancelledRunStaysCancelled) {
  Bench bench;
  event::ImportRows import;
  import.token = 50;
  import.rows.runs.resize(1);
  import.rows.runs[0].id = "01J00000000000000000000000";
  import.rows.runs[0].state = RunState::kCancelled;
  bench.Do(import);
  event::CancelRun cancel;
  cancel.token = 51;
  cancel.run = import.rows.runs[0].id;
  bench.Do(cancel);
  EXPECT_EQ(std::get<CancelReply>(bench.replies[51].body).state, RunState::kCancelled);
}

}  // namespace
}  // namespace assay
