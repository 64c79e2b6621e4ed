#include "common/results/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Record Cell(const std::string& key, int64_t repeat, const std::string& outcome) {
  Record record;
  record.SetText(Field::kKey, key);
  record.SetText(Field::kTarget, "RTX 3090");
  record.SetText(Field::kCard, "RTX 3090");
  record.SetText(Field::kStack, "libtorch-2.11.0");
  record.SetText(Field::kModel, "resnet50");
  record.SetText(Field::kUnit, "img/s");
  record.SetText(Field::kThermal, "cold");
  EXPECT_TRUE(record.Set(Field::kRepeat, repeat).ok());
  if (!outcome.empty()) record.SetText(Field::kOutcome, outcome);
  return record;
}

Record Ok(const std::string& key, int64_t repeat, double throughput) {
  Record record = Cell(key, repeat, "ok");
  EXPECT_TRUE(record.Set(Field::kThroughput, throughput).ok());
  EXPECT_TRUE(record.Set(Field::kSteps, int64_t{100}).ok());
  record.SetText(Field::kStopReason, "confidence");
  return record;
}

TEST(Summarize, NothingGivesNoRows) { EXPECT_THAT(Summarize({}), IsEmpty()); }

TEST(Summarize, GroupsRepeatsOfASpecOnATarget) {
  const std::vector<Record> records = {Ok("a", 2, 101), Ok("b", 1, 50), Ok("a", 1, 99),
                                       Ok("a", 3, 100)};
  const auto rows = Summarize(records);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].key, "a");
  EXPECT_THAT(rows[0].records, ElementsAre(2, 0, 3));
  EXPECT_EQ(rows[0].processes, 3);
  EXPECT_EQ(rows[0].outcome, "ok");
  EXPECT_EQ(rows[1].key, "b");
}

TEST(Summarize, ThroughputIsTheMeanOfProcessMeansWithStudentsInterval) {
  const auto rows =
      Summarize(std::vector<Record>{Ok("a", 1, 99), Ok("a", 2, 100), Ok("a", 3, 101)});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_DOUBLE_EQ(*rows[0].throughput, 100);
  ASSERT_TRUE(rows[0].interval.has_value());
  EXPECT_NEAR(rows[0].interval->HalfWidth(), 2.484, 0.001);
  EXPECT_NEAR(*rows[0].interval_ratio, 0.02484, 0.00001);
  EXPECT_FALSE(rows[0].indicative);
  EXPECT_THAT(rows[0].marks, IsEmpty());
}

TEST(Summarize, OneProcessIsIndicativeAndHasNoInterval) {
  const auto rows = Summarize(std::vector<Record>{Ok("a", 1, 99)});
  EXPECT_TRUE(rows[0].indicative);
  EXPECT_THAT(rows[0].marks, ElementsAre("indicative"));
  EXPECT_FALSE(rows[0].interval.has_value());
  EXPECT_FALSE(rows[0].interval_ratio.has_value());
}

TEST(Summarize, AGangAboveLinearIsSuspectAndKept) {
  std::vector<Record> records;
  for (int64_t repeat = 1; repeat <= 3; ++repeat) {
    const double noise = static_cast<double>(repeat) - 2;
    records.push_back(Ok("one", repeat, 100 + noise));
    Record four = Ok("four", repeat, 480 + noise);
    EXPECT_TRUE(four.Set(Field::kGpus, int64_t{4}).ok());
    records.push_back(four);
    Record sound = Ok("linear", repeat, 400 + noise);
    EXPECT_TRUE(sound.Set(Field::kGpus, int64_t{4}).ok());
    records.push_back(sound);
  }
  const auto rows = Summarize(records);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_THAT(rows[0].marks, IsEmpty());
  EXPECT_THAT(rows[1].marks, ElementsAre("suspect"));
  EXPECT_NEAR(*rows[1].throughput, 480, 1e-9);
  EXPECT_THAT(rows[2].marks, IsEmpty());
}

// What every GPU of a node did together is no base of world size 1.
TEST(Summarize, TheBaseOfAGangIsNeitherColocatedNorFedInAnotherWay) {
  for (const auto& [field, text] : {std::pair{Field::kColocate, "all"}, {Field::kData, "host"}}) {
    std::vector<Record> records;
    for (int64_t repeat = 1; repeat <= 3; ++repeat) {
      const double noise = static_cast<double>(repeat) - 2;
      records.push_back(Ok("one", repeat, 100 + noise));
      Record other = Ok("other", repeat, 400 + noise);
      other.SetText(field, text);
      records.push_back(other);
      Record four = Ok("four", repeat, 480 + noise);
      EXPECT_TRUE(four.Set(Field::kGpus, int64_t{4}).ok());
      records.push_back(four);
    }
    EXPECT_THAT(Summarize(records)[2].marks, ElementsAre("suspect")) << text;
  }
}

// Case 28: a filter on throttling once left a benchmark with no result at all.
TEST(Summarize, Case28AWarmCardThatThrottlesThroughoutKeepsItsRowWithItsSpread) {
  std::vector<Record> records;
  for (int64_t repeat = 1; repeat <= 3; ++repeat) {
    records.push_back(Ok("a", repeat, repeat == 1 ? 100 : 83));
    EXPECT_TRUE(records.back().Set(Field::kThrottleRatio, 1.0).ok());
  }
  const auto rows = Summarize(records);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_THAT(rows[0].marks, ElementsAre("throttled"));
  EXPECT_EQ(rows[0].processes, 3);
  EXPECT_NEAR(*rows[0].throughput, 88.667, 0.001);
  EXPECT_GT(*rows[0].interval_ratio, 0.1);
}

TEST(Summarize, Case32ARatioBelowOneStandsAsItIs) {
  std::vector<Record> records;
  for (int64_t repeat = 1; repeat <= 2; ++repeat) {
    records.push_back(Ok("fp32", repeat, 200));
    records.push_back(Ok("amp", repeat, 160));
  }
  const auto rows = Summarize(records);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[0].is_base);
  EXPECT_NEAR(rows[1].ratio->value, 0.8, 1e-12);
  EXPECT_THAT(rows[1].marks, IsEmpty());
}

TEST(Summarize, OtherTargetsAndStacksAreOtherRows) {
  Record other_target = Ok("a", 1, 100);
  other_target.SetText(Field::kTarget, "A100");
  Record other_stack = Ok("a", 1, 100);
  other_stack.SetText(Field::kStack, "libtorch-2.7.1");
  EXPECT_EQ(Summarize(std::vector<Record>{Ok("a", 1, 100), other_target, other_stack}).size(), 3u);
}

TEST(Summarize, ACellThatNeverLearntItsStackJoinsItsSpec) {
  Record pending = Cell("a", 1, "");
  pending.Clear(Field::kStack);
  const auto rows = Summarize(std::vector<Record>{pending, Ok("a", 2, 100)});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].outcome, "ok (1), pending (1)");
  EXPECT_EQ(rows[0].stack, "libtorch-2.11.0");
}

// Case 35: a stack keeps its name when its software changes under it.
TEST(Summarize, ProcessesOfUnlikeSoftwareOrUnitAreNoRepeats) {
  const auto with = [](int64_t repeat, double throughput, Field field, const std::string& text) {
    Record record = Ok("a", repeat, throughput);
    record.SetText(Field::kDriverVersion, "535.54");
    record.SetText(field, text);
    return record;
  };
  for (const Field field :
       {Field::kUnit, Field::kDriverVersion, Field::kLibtorchVersion, Field::kCudaVersion,
        Field::kCudnnVersion, Field::kNcclVersion, Field::kRunnerVersion, Field::kStackDigest}) {
    const std::string name(InfoOf(field).name);
    const auto rows = Summarize(std::vector<Record>{
        with(1, 100, field, "1"), with(2, 102, field, "1"), with(3, 200, field, "2")});
    ASSERT_EQ(rows.size(), 2u) << name;
    EXPECT_DOUBLE_EQ(*rows[0].throughput, 101) << name;
    EXPECT_DOUBLE_EQ(*rows[1].throughput, 200) << name;
    EXPECT_EQ(rows[0].apart, name + " 1");
    EXPECT_EQ(rows[1].apart, name + " 2");
  }
}

TEST(Summarize, ProcessesOfOtherMathOrEccAreNoRepeats) {
  const std::vector<std::pair<Field, std::pair<Value, Value>>> settings = {
      {Field::kAllowTf32Matmul, {true, false}},
      {Field::kAllowTf32Cudnn, {true, false}},
      {Field::kReducedPrecisionReduction, {true, false}},
      {Field::kReducedPrecisionReductionBf16, {true, false}},
      {Field::kFp16Accumulation, {true, false}},
      {Field::kCudnnBenchmark, {true, false}},
      {Field::kCudnnBenchmarkLimit, {int64_t{10}, int64_t{0}}},
      {Field::kDeterministic, {true, false}},
      {Field::kEccEnabled, {true, false}},
      {Field::kAttentionBackends, {std::string("math"), std::string("flash,math")}},
      {Field::kAllocatorSettings, {std::string("default"), std::string("A=1")}}};
  for (const auto& [field, values] : settings) {
    Record one = Ok("a", 1, 100), other = Ok("a", 2, 200);
    ASSERT_TRUE(one.Set(field, values.first).ok());
    ASSERT_TRUE(other.Set(field, values.second).ok());
    const auto rows = Summarize(std::vector<Record>{one, other});
    ASSERT_EQ(rows.size(), 2u) << InfoOf(field).name;
    EXPECT_TRUE(rows[1].apart.starts_with(InfoOf(field).name)) << rows[1].apart;
  }
}

TEST(Summarize, AnotherMethodIsAnotherRowWithoutARatioBetweenThem) {
  Record newer = Ok("a", 2, 200);
  Record older = Ok("a", 1, 100);
  ASSERT_TRUE(older.Set(Field::kMethodVersion, int64_t{1}).ok());
  ASSERT_TRUE(newer.Set(Field::kMethodVersion, int64_t{2}).ok());
  const auto rows = Summarize(std::vector<Record>{older, newer});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[1].is_base);
  EXPECT_EQ(rows[1].apart, "method_version 2");
}

TEST(Summarize, WhatIsNotKnownKeepsNothingApart) {
  Record known = Ok("a", 1, 100);
  known.SetText(Field::kDriverVersion, "535.54");
  const auto rows = Summarize(std::vector<Record>{known, Ok("a", 2, 102), Cell("a", 3, "fail")});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].apart, "");
}

// Case 36: what has no figure is missing and drags no mean down.
TEST(Summarize, WhatFailedIsMissingNotZero) {
  Record failed = Cell("a", 3, "fail");
  ASSERT_TRUE(failed.Set(Field::kThroughput, 0.0).ok());
  failed.SetText(Field::kReason, "crash");
  failed.SetText(Field::kMessage, "killed by signal 11");
  const auto rows = Summarize(std::vector<Record>{Ok("a", 1, 100), Ok("a", 2, 102), failed});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_DOUBLE_EQ(*rows[0].throughput, 101);
  EXPECT_EQ(rows[0].processes, 2);
  EXPECT_EQ(rows[0].outcome, "ok (2), fail (1)");
  EXPECT_EQ(rows[0].reason, "crash");
  EXPECT_EQ(rows[0].message, "killed by signal 11");
}

// Case 45: no magic numbers.
TEST(Summarize, InvalidMeasurementsAreMissing) {
  const auto rows = Summarize(std::vector<Record>{Ok("a", 1, -1), Ok("a", 2, 0)});
  EXPECT_FALSE(rows[0].throughput.has_value());
  EXPECT_EQ(rows[0].processes, 0);
  EXPECT_EQ(rows[0].invalid, 2);
  EXPECT_FALSE(rows[0].indicative);
  EXPECT_FALSE(rows[0].ratio.has_value());
}

TEST(Summarize, ARowWithoutAnyOkHasNoFigures) {
  const auto rows = Summarize(std::vector<Record>{Cell("a", 1, "mem_limit")});
  EXPECT_EQ(rows[0].outcome, "mem_limit");
  EXPECT_FALSE(rows[0].throughput.has_value());
  EXPECT_FALSE(rows[0].step_p50_ms.has_value());
  EXPECT_FALSE(rows[0].reserved_peak_bytes.has_value());
}

TEST(Summarize, MemoryIsTheLargestOfTheProcesses) {
  Record one = Ok("a", 1, 100);
  Record other = Ok("a", 2, 100);
  ASSERT_TRUE(one.Set(Field::kReservedPeakBytes, int64_t{10}).ok());
  ASSERT_TRUE(other.Set(Field::kReservedPeakBytes, int64_t{12}).ok());
  const auto rows = Summarize(std::vector<Record>{one, other});
  EXPECT_EQ(rows[0].reserved_peak_bytes, 12);
  EXPECT_FALSE(rows[0].allocated_peak_bytes.has_value());
}

TEST(Summarize, RatioIsToTheFirstRowWithAThroughput) {
  const auto rows =
      Summarize(std::vector<Record>{Cell("none", 1, "mem_limit"), Ok("a", 1, 99), Ok("a", 2, 101),
                                    Ok("b", 1, 198), Ok("b", 2, 202)});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_FALSE(rows[0].ratio.has_value());
  EXPECT_TRUE(rows[1].is_base);
  EXPECT_EQ(rows[1].ratio->value, 1);
  EXPECT_FALSE(rows[2].is_base);
  EXPECT_NEAR(rows[2].ratio->value, 2, 1e-9);
  ASSERT_TRUE(rows[2].ratio->interval.has_value());
  EXPECT_LT(rows[2].ratio->interval->low, 2);
  EXPECT_GT(rows[2].ratio->interval->high, 2);
}

Record OnCard(Record record, const std::string& card) {
  record.SetText(Field::kCard, card);
  record.SetText(Field::kTarget, card);
  return record;
}

TEST(Summarize, WithABaselineARatioIsToThatCardsRowOfTheSameSpec) {
  const auto rows = Summarize(
      std::vector<Record>{OnCard(Ok("a", 1, 300), "H200"), OnCard(Ok("b", 1, 500), "H200"),
                          OnCard(Ok("a", 1, 100), "V100"), OnCard(Ok("b", 1, 125), "V100")},
      "V100");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_NEAR(rows[0].ratio->value, 3, 1e-9);
  EXPECT_NEAR(rows[1].ratio->value, 4, 1e-9);
  EXPECT_FALSE(rows[0].is_base);
  for (const size_t base : {2u, 3u}) {
    EXPECT_TRUE(rows[base].is_base);
    EXPECT_EQ(rows[base].ratio->value, 1);
  }
}

TEST(Summarize, WhatTheBaselineHasNoRowOfHasNoRatio) {
  Record other_stack = OnCard(Ok("a", 1, 300), "H200");
  other_stack.SetText(Field::kStack, "libtorch-2.7.1");
  const auto rows = Summarize(
      std::vector<Record>{other_stack, OnCard(Ok("b", 1, 500), "H200"),
                          OnCard(Ok("a", 1, 100), "V100"), OnCard(Cell("b", 1, "fail"), "V100")},
      "V100");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_FALSE(rows[0].ratio.has_value());
  EXPECT_FALSE(rows[1].ratio.has_value());
  EXPECT_TRUE(rows[2].ratio.has_value());
  for (const auto& row : Summarize(std::vector<Record>{Ok("a", 1, 1), Ok("b", 1, 2)}, "V100")) {
    EXPECT_FALSE(row.ratio.has_value());
  }
}

TEST(Summarize, ARatioOfSingleProcessesHasNoInterval) {
  const auto rows = Summarize(std::vector<Record>{Ok("a", 1, 100), Ok("b", 1, 183)});
  EXPECT_NEAR(rows[1].ratio->value, 1.83, 1e-9);
  EXPECT_FALSE(rows[1].ratio->interval.has_value());
}

TEST(Summarize, SimulatedIsNeverComparedWithMeasured) {
  Record simulated = Ok("b", 1, 500);
  ASSERT_TRUE(simulated.Set(Field::kSimulated, true).ok());
  const auto rows = Summarize(std::vector<Record>{Ok("a", 1, 100), simulated});
  EXPECT_TRUE(rows[1].is_base);
  EXPECT_EQ(rows[1].ratio->value, 1);
  EXPECT_THAT(rows[1].marks, ElementsAre("indicative", "simulated"));
}

TEST(Summarize, ImagesAreNeverComparedWithSequences) {
  Record sequences = Ok("b", 1, 500);
  sequences.SetText(Field::kUnit, "sequences/s");
  const auto rows = Summarize(std::vector<Record>{Ok("a", 1, 100), sequences});
  EXPECT_TRUE(rows[1].is_base);
}

TEST(Summarize, MarksOfAllProcessesAreUnited) {
  Record capped = Ok("a", 1, 100);
  capped.SetText(Field::kStopReason, "max_seconds");
  Record hot = Ok("a", 2, 100);
  ASSERT_TRUE(hot.Set(Field::kThrottleRatio, 0.9).ok());
  const auto rows = Summarize(std::vector<Record>{hot, capped});
  EXPECT_THAT(rows[0].marks, ElementsAre("unconverged", "throttled"));
}

// Case 45: where every cell fails, where one fails, where the user stopped.
TEST(RunExitCode, SaysWhatHappened) {
  using enum Outcome;
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kOk, kMemLimit, kUnsupported}, 0), 0);
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kOk, kFail}, 0), 1);
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kOk, kHung}, 0), 1);
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kOk, kTimeout}, 0), 1);
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kOk, kLost}, 0), 1);
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kFail, kFail}, 0), 3);
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kMemLimit}, 0), 3);
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kUnsupported}, 0), 3);
  EXPECT_EQ(RunExitCode({}, 0), 3);
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kOk, kFail, kCancelled}, 0), 130);
}

// A figure that the rules call impossible is no figure.
TEST(RunExitCode, OkButInvalidIsNotMeasured) {
  using enum Outcome;
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kOk, kOk}, 2), 3);
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kOk, kMemLimit}, 1), 3);
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kOk, kFail}, 1), 3);
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kOk, kOk}, 1), 1);
  EXPECT_EQ(RunExitCode(std::vector<Outcome>{kOk, kOk, kCancelled}, 1), 130);
}

TEST(OutcomeCounts, CountsInAFixedOrder) {
  using enum Outcome;
  EXPECT_EQ(OutcomeCounts(std::vector<Outcome>{kFail, kOk, kMemLimit, kOk}),
            "2 ok, 1 mem_limit, 1 fail");
  EXPECT_EQ(OutcomeCounts({}), "no cells");
}

}  // namespace
}  // namespace assay
