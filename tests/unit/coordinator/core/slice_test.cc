// Slices of a matrix and going on with a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "common/status/status.h"
#include "tests/unit/coordinator/core/bench.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

std::vector<Spec> FiveSpecs() {
  std::vector<Spec> specs;
  for (uint32_t i = 0; i < 5; ++i) specs.push_back(MakeSpec(i));
  return specs;
}

std::string SubmitSlice(Bench& bench, Slice slice, bool force_new = false) {
  return bench.Submit(FiveSpecs(), 2, [&](event::SubmitRun& s) {
    s.digest = "d";
    s.slice = std::move(slice);
    s.force_new = force_new;
  });
}

std::string Refusal(const Bench& bench) {
  return Message(bench.replies.at(bench.last_token).status);
}

TEST(Sliced, JobsWithoutANetworkShareRunAndKeysAndNoCell) {
  std::set<std::string> runs, keys;
  std::set<uint64_t> numbers;
  size_t cells = 0;
  for (const uint32_t index : {1u, 2u, 3u}) {
    Bench bench;
    // Cards differ: numbers must not depend on what a job finds.
    const SessionHandle session = bench.Hello(MakeNode("n1", index == 2 ? "V100" : "RTX 3090"));
    const std::string run = SubmitSlice(bench, {index, 3, "job"});
    runs.insert(run);
    EXPECT_EQ(bench.Drain(session), index == 3 ? 2 : 4);
    EXPECT_EQ(bench.View(run).state, RunState::kDone);
    const RunSnapshot stored = bench.rows.Run(run);
    EXPECT_EQ(stored.specs.size(), 5u);
    cells += stored.cells.size();
    for (const CellRow& cell : stored.cells) {
      EXPECT_EQ(cell.spec_index % 3, index - 1);
      numbers.insert(cell.cell);
      keys.insert(stored.specs[cell.spec_index].key);
    }
  }
  EXPECT_EQ(runs.size(), 1u);
  EXPECT_EQ(cells, 10u);
  EXPECT_EQ(numbers.size(), 10u);
  EXPECT_EQ(keys.size(), 5u);
}

TEST(Sliced, AreOneShuffle) {
  Bench one, two;
  const std::string run = SubmitSlice(one, {1, 2, ""});
  SubmitSlice(two, {2, 2, ""});
  EXPECT_EQ(one.rows.runs.at(run).seed, two.rows.runs.at(run).seed);
}

TEST(Sliced, AnUnfinishedSliceGoesOnAlsoAfterARestart) {
  Bench bench;
  SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = SubmitSlice(bench, {2, 2, ""});
  bench.Report(session, bench.StartOn(session));
  bench.Boot();
  session = bench.Hello(MakeNode("n1"));
  EXPECT_EQ(SubmitSlice(bench, {2, 2, ""}), run);
  EXPECT_EQ(bench.Drain(session), 3);
  EXPECT_EQ(bench.View(run).outcomes.at("ok"), 4u);
}

TEST(Sliced, TheWholeMatrixIsAnotherRun) {
  Bench bench;
  bench.Hello(MakeNode("n1"));
  const std::string slice = SubmitSlice(bench, {1, 2, ""});
  const std::string whole = SubmitSlice(bench, {});
  EXPECT_NE(whole, slice);
  EXPECT_EQ(bench.View(whole).cells, 10u);
  EXPECT_EQ(SubmitSlice(bench, {}), whole);
}

TEST(Sliced, RunsThatCannotBeToldApartAreRefusedWithTheRemedy) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  EXPECT_EQ(SubmitSlice(bench, {6, 6, ""}), "");
  EXPECT_THAT(Refusal(bench), HasSubstr("slice 6/6 is empty, since the matrix has 5 specs"));
  const std::string run = SubmitSlice(bench, {1, 2, ""});
  EXPECT_EQ(SubmitSlice(bench, {2, 2, ""}), "");
  EXPECT_THAT(Refusal(bench), HasSubstr("runs slice 1/2 of the same matrix"));
  EXPECT_EQ(SubmitSlice(bench, {1, 2, ""}, true), "");
  EXPECT_THAT(Refusal(bench), HasSubstr("--slice-id"));
  bench.Drain(session);
  EXPECT_EQ(SubmitSlice(bench, {1, 2, ""}), "");
  EXPECT_THAT(Refusal(bench), HasSubstr("has ended here: `assay run --resume`"));
  EXPECT_NE(SubmitSlice(bench, {1, 2, "second"}), run);
  EXPECT_TRUE(bench.replies[bench.last_token].status.ok());
}

TEST(Sliced, ARunWithGapsInItsNumbersIsRunAgain) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  const std::string run = SubmitSlice(bench, {2, 3, ""});
  EXPECT_EQ(bench.Drain(session, Outcome::kFail, reason::kCrash), 4);
  event::Rerun rerun;
  rerun.token = ++bench.last_token;
  rerun.run = run;
  rerun.loaded = bench.rows.Run(run);
  bench.Do(rerun);
  EXPECT_TRUE(bench.replies[bench.last_token].status.ok());
  EXPECT_EQ(bench.Drain(session), 4);
  for (const uint64_t cell : {2, 5, 8, 11}) {
    EXPECT_EQ(bench.CellOf(run, cell).outcome, Outcome::kOk) << cell;
  }
}

TEST(Resumed, GoesOnWithThatRunAndNoOther) {
  Bench bench;
  bench.Hello(MakeNode("n1"));
  const auto text = [](event::SubmitRun& s) { s.digest = "d"; };
  const std::string older = bench.Submit({MakeSpec(0)}, 1, text);
  const std::string newer = bench.Submit({MakeSpec(0)}, 1, [](event::SubmitRun& s) {
    s.digest = "d";
    s.force_new = true;
  });
  ASSERT_NE(older, newer);
  const auto resume = [&](const std::string& run) {
    return bench.Submit({MakeSpec(0)}, 1, [&](event::SubmitRun& s) {
      s.digest = "d";
      s.resumed = run;
    });
  };
  EXPECT_EQ(resume(newer), newer);
  EXPECT_TRUE(std::get<SubmitReply>(bench.replies[bench.last_token].body).continued);
  EXPECT_EQ(resume("no such run"), "");
  EXPECT_THAT(Refusal(bench), HasSubstr("ended meanwhile"));
}

}  // namespace
}  // namespace assay
