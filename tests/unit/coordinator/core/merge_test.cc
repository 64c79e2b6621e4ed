#include "coordinator/cell/merge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "coordinator/cell/cell_record.h"

namespace assay {
namespace {

using testing::HasSubstr;

const std::vector<MemberRow> kTwo = {{"n1", "GPU-a", 0}, {"n2", "GPU-b", 0}};

event::AttemptReport ReportOf(const std::string& node, uint32_t rank, Outcome outcome,
                              std::string_view why = "") {
  event::AttemptReport report;
  report.node = node;
  event::RankReport each;
  each.rank = rank;
  each.outcome = outcome;
  each.reason = why;
  each.message = fmt::format("what {} says", node);
  each.log_tail = node;
  report.ranks.push_back(each);
  return report;
}

void Measured(event::AttemptReport& report, double seconds, int64_t peak) {
  Record& fields = report.ranks[0].fields;
  fields.Set(Field::kSamples, int64_t{1000}).IgnoreError();
  fields.Set(Field::kSeconds, seconds).IgnoreError();
  fields.Set(Field::kThroughput, 1000 / seconds).IgnoreError();
  fields.Set(Field::kAllocatedPeakBytes, peak).IgnoreError();
}

TEST(Merge, ThroughputIsGlobalSamplesOverTheSlowestWindow) {
  auto a = ReportOf("n1", 0, Outcome::kOk), b = ReportOf("n2", 1, Outcome::kOk);
  Measured(a, 10, 5);
  Measured(b, 12.5, 9);
  const MergedResult merged = MergeReports(kTwo, {&b, &a}, std::nullopt);
  EXPECT_EQ(merged.outcome, Outcome::kOk);
  EXPECT_TRUE(merged.complete);
  EXPECT_DOUBLE_EQ(*merged.record.Number(Field::kThroughput), 80);
  EXPECT_DOUBLE_EQ(*merged.record.Number(Field::kSeconds), 12.5);
  EXPECT_EQ(merged.record.Integer(Field::kAllocatedPeakBytes), 9);
}

// Two ranks with windows by device and host, and steps as claimed and as counted.
Record OfTwo(std::pair<double, double> a_clocks, std::pair<double, double> b_clocks,
             std::pair<int64_t, int64_t> a_steps, std::pair<int64_t, int64_t> b_steps,
             bool apart = false) {
  auto a = ReportOf("n1", 0, Outcome::kOk), b = ReportOf("n2", 1, Outcome::kOk);
  const auto fill = [&](event::AttemptReport& report, std::pair<double, double> clocks,
                        std::pair<int64_t, int64_t> steps) {
    Measured(report, clocks.first, 5);
    Record& fields = report.ranks[0].fields;
    fields.Set(Field::kHostSeconds, clocks.second).IgnoreError();
    fields.Set(Field::kSteps, steps.first).IgnoreError();
    fields.Set(Field::kDeviceSteps, steps.second).IgnoreError();
    fields.Set(Field::kWorldSize, int64_t{apart ? 1 : 2}).IgnoreError();
  };
  fill(a, a_clocks, a_steps);
  fill(b, b_clocks, b_steps);
  return MergeReports(kTwo, {&a, &b}, std::nullopt).record;
}

TEST(Merge, OneRanksClocksDoNotHideBehindAnothersLongerWindow) {
  // By itself the first window is 20 % off; the largest of each clock would agree.
  const Record hidden = OfTwo({10, 12}, {12, 12}, {9, 9}, {9, 9});
  EXPECT_EQ(hidden.Number(Field::kSeconds), 10);
  EXPECT_EQ(hidden.Number(Field::kHostSeconds), 12);
  EXPECT_DOUBLE_EQ(*hidden.Number(Field::kThroughput), 1000.0 / 12);
  // Of two that are off, the one that is off more.
  EXPECT_EQ(OfTwo({10, 10.5}, {12, 13}, {9, 9}, {9, 9}).Number(Field::kHostSeconds), 13);
  // Within the limit it is the slowest one's pair, whole.
  const Record sound = OfTwo({10, 10.1}, {10.05, 10.06}, {9, 9}, {9, 9});
  EXPECT_EQ(sound.Number(Field::kSeconds), 10.05);
  EXPECT_EQ(sound.Number(Field::kHostSeconds), 10.06);
  EXPECT_EQ(OfTwo({0, 0}, {12, 12}, {9, 9}, {9, 9}).Number(Field::kSeconds), 0);
}

TEST(Merge, StepsThatAnyRankDidNotDoShow) {
  const Record second = OfTwo({10, 10}, {10, 10}, {100, 100}, {100, 98});
  EXPECT_EQ(second.Integer(Field::kSteps), 100);
  EXPECT_EQ(second.Integer(Field::kDeviceSteps), 98);
  // Sums of one too many and one too few are equal.
  const Record apart = OfTwo({10, 10}, {10, 10}, {100, 101}, {100, 99}, /*apart=*/true);
  EXPECT_NE(apart.Integer(Field::kSteps), apart.Integer(Field::kDeviceSteps));
  const Record sound = OfTwo({10, 10}, {10, 10}, {100, 100}, {90, 90}, /*apart=*/true);
  EXPECT_EQ(sound.Integer(Field::kSteps), 190);
  EXPECT_EQ(sound.Integer(Field::kDeviceSteps), 190);
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(OfTwo({10, 10}, {10, 10}, {9, 9}, {most, -most}).Integer(Field::kSteps), most);
}

TEST(Merge, MissingRankIsNoResultAndNeverASlowOne) {
  auto a = ReportOf("n1", 0, Outcome::kOk);
  Measured(a, 10, 5);
  const MergedResult merged = MergeReports(kTwo, {&a}, std::nullopt);
  EXPECT_EQ(merged.outcome, Outcome::kFail);
  EXPECT_THAT(merged.message, HasSubstr("rank 1 on GPU-b of n2"));
  EXPECT_FALSE(merged.record.Has(Field::kThroughput));
}

TEST(Merge, ReasonIsACodeAndThereIsAlwaysASentence) {
  const std::vector<MemberRow> one = {{"n1", "GPU-a", 0}};
  auto odd = ReportOf("n1", 0, Outcome::kFail, "../../x\n\x1B");
  odd.ranks[0].message = "a\x1B[31mb" + std::string(100'000, 'm');
  MergedResult merged = MergeReports(one, {&odd}, std::nullopt);
  EXPECT_EQ(merged.reason, reason::kRunnerError);
  EXPECT_EQ(merged.message.find('\x1B'), std::string::npos);
  EXPECT_LT(merged.message.size(), 5000u);
  for (const Outcome outcome : {Outcome::kFail, Outcome::kMemLimit, Outcome::kUnsupported,
                                Outcome::kHung, Outcome::kTimeout, Outcome::kLost}) {
    auto mute = ReportOf("n1", 0, outcome);
    mute.ranks[0].message.clear();
    merged = MergeReports(one, {&mute}, std::nullopt);
    EXPECT_FALSE(merged.reason.empty());
    EXPECT_THAT(merged.message, HasSubstr("n1"));
  }
}

TEST(Merge, OutOfMemoryOfAnyRankDecidesOverCrashAndOverTheCoordinator) {
  auto a = ReportOf("n1", 0, Outcome::kFail, reason::kCrash);
  auto b = ReportOf("n2", 1, Outcome::kMemLimit, reason::kOutOfMemory);
  const MergedResult merged =
      MergeReports(kTwo, {&a, &b}, Decision{Outcome::kTimeout, "cell_limit", ""});
  EXPECT_EQ(merged.outcome, Outcome::kMemLimit);
  EXPECT_EQ(merged.log_tail, "n2");
  EXPECT_THAT(merged.message, HasSubstr("GPU-b"));
}

TEST(Merge, NamedCauseDecidesOverItsEcho) {
  auto a = ReportOf("n1", 0, Outcome::kFail, reason::kCrash);
  auto b = ReportOf("n2", 1, Outcome::kFail, reason::kEccError);
  EXPECT_EQ(MergeReports(kTwo, {&a, &b}, std::nullopt).reason, reason::kEccError);
}

TEST(Merge, RankIsBelievedOnlyFromItsNode) {
  auto a = ReportOf("n1", 0, Outcome::kOk);
  auto b = ReportOf("n1", 1, Outcome::kOk);
  EXPECT_FALSE(MergeReports(kTwo, {&a, &b}, std::nullopt).complete);
}

TEST(Merge, EnergyOfAGangIsUnknownWhereOnePartIs) {
  auto a = ReportOf("n1", 0, Outcome::kOk), b = ReportOf("n2", 1, Outcome::kOk);
  a.telemetry.Set(Field::kEnergyJoules, 100.0).IgnoreError();
  EXPECT_FALSE(MergeReports(kTwo, {&a, &b}, std::nullopt).record.Has(Field::kEnergyJoules));
  b.telemetry.Set(Field::kEnergyJoules, 50.0).IgnoreError();
  EXPECT_EQ(MergeReports(kTwo, {&a, &b}, std::nullopt).record.Number(Field::kEnergyJoules), 150);
}

TEST(Merge, HealthOfAGangIsThatOfAllItsNodes) {
  auto a = ReportOf("n1", 0, Outcome::kOk), b = ReportOf("n2", 1, Outcome::kOk);
  a.telemetry.Set(Field::kPcieWidth, int64_t{16}).IgnoreError();
  b.telemetry.Set(Field::kPcieWidth, int64_t{8}).IgnoreError();
  a.telemetry.Set(Field::kEccCorrectedAfter, int64_t{1}).IgnoreError();
  b.telemetry.Set(Field::kEccCorrectedAfter, int64_t{2}).IgnoreError();
  a.telemetry.Set(Field::kThrottleSwThermalRatio, 0.1).IgnoreError();
  b.telemetry.Set(Field::kThrottleSwThermalRatio, 0.3).IgnoreError();
  a.telemetry.SetText(Field::kXids, "");
  b.telemetry.SetText(Field::kXids, "31");
  const Record record = MergeReports(kTwo, {&a, &b}, std::nullopt).record;
  EXPECT_EQ(record.Integer(Field::kPcieWidth), 8);
  EXPECT_EQ(record.Integer(Field::kEccCorrectedAfter), 3);
  EXPECT_EQ(record.Number(Field::kThrottleSwThermalRatio), 0.3);
  EXPECT_EQ(record.List(Field::kXids), std::vector<std::string>{"31"});
  b.telemetry.Clear(Field::kXids);
  EXPECT_FALSE(MergeReports(kTwo, {&a, &b}, std::nullopt).record.Has(Field::kXids));
}

TEST(Merge, RanksThatWereWorldsOfTheirOwnAreAddedUp) {
  auto a = ReportOf("n1", 0, Outcome::kOk);
  a.ranks.push_back(a.ranks[0]);
  a.ranks[1].rank = 1;
  const double seconds[] = {10, 10.1};
  const int64_t steps[] = {100, 90};
  for (size_t i = 0; i < 2; ++i) {
    Record& fields = a.ranks[i].fields;
    fields.Set(Field::kWorldSize, int64_t{1}).IgnoreError();
    fields.Set(Field::kSteps, steps[i]).IgnoreError();
    fields.Set(Field::kDeviceSteps, steps[i]).IgnoreError();
    fields.Set(Field::kSamples, 32 * steps[i]).IgnoreError();
    fields.Set(Field::kSeconds, seconds[i]).IgnoreError();
    fields.Set(Field::kStepP50Ms, 100.0 + static_cast<double>(i)).IgnoreError();
    fields.SetText(Field::kStopReason, i == 0 ? "confidence" : "max_seconds");
  }
  const std::vector<MemberRow> two = {{"n1", "GPU-a", 0}, {"n1", "GPU-b", 1}};
  const Record record = MergeReports(two, {&a}, std::nullopt).record;
  EXPECT_EQ(record.Integer(Field::kSteps), 190);
  EXPECT_EQ(record.Integer(Field::kDeviceSteps), 190);
  EXPECT_EQ(record.Integer(Field::kSamples), 190 * 32);
  EXPECT_DOUBLE_EQ(*record.Number(Field::kThroughput), 190 * 32 / 10.1);
  EXPECT_EQ(record.Number(Field::kStepP50Ms), 101);
  EXPECT_EQ(record.Text(Field::kStopReason), "max_seconds");
  EXPECT_EQ(record.Integer(Field::kWorldSize), 1);
}

TEST(Merge, OfNothingIsAFailure) {
  EXPECT_EQ(MergeReports({}, {}, std::nullopt).outcome, Outcome::kFail);
  EXPECT_EQ(MergeReports(kTwo, {}, std::nullopt).outcome, Outcome::kFail);
}

TEST(CellRecord, OfACellWithoutAnOutcomeHasPlanFieldsAndNoOutcome) {
  RunRow run;
  Spec spec;
  spec.model = "resnet50";
  spec.batch = kBatchMax;
  CellRow cell;
  cell.cell = 7;
  cell.target = "RTX 3090";
  const Record record = CellRecord(run, spec, cell, nullptr);
  EXPECT_EQ(record.Text(Field::kModel), "resnet50");
  EXPECT_EQ(record.Text(Field::kBatch), "max");
  EXPECT_EQ(record.Text(Field::kCard), "RTX 3090");
  EXPECT_EQ(record.Integer(Field::kCell), 7);
  EXPECT_FALSE(record.Has(Field::kOutcome));
  EXPECT_FALSE(record.Has(Field::kStack));
}

TEST(CellRecord, TimeIsIsoWithZ) {
  EXPECT_EQ(IsoTime(1767225600123), "2026-01-01T00:00:00.123Z");
  EXPECT_EQ(IsoTime(0), "");
  EXPECT_EQ(IsoTime(INT64_MAX), "");
}

}  // namespace
}  // namespace assay
