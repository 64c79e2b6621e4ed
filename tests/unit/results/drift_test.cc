#include "common/results/drift.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Record CellAfter(const std::string& series, int64_t index, double before,
                 std::optional<double> after = std::nullopt, const std::string& gpu = "GPU-0") {
  Record record;
  record.SetText(Field::kSentinelSeries, series);
  record.SetText(Field::kGpuUuids, gpu);
  record.Set(Field::kSentinelIndex, index).IgnoreError();
  record.Set(Field::kSentinelBefore, before).IgnoreError();
  if (after) record.Set(Field::kSentinelAfter, *after).IgnoreError();
  return record;
}

std::optional<double> DriftOf(const SentinelReadings& readings, Record record) {
  readings.FillDrift(record);
  return record.Number(Field::kDriftRatio);
}

TEST(Drift, IsTheNextReadingOverTheOneBefore) {
  SentinelReadings readings;
  const Record first = CellAfter("a", 1, 1000), same = CellAfter("a", 1, 1000);
  const Record second = CellAfter("a", 2, 970), last = CellAfter("a", 2, 970, 980);
  for (const Record& record : {first, same, second, last}) readings.Add(record);
  EXPECT_NEAR(*DriftOf(readings, first), -0.03, 1e-12);
  EXPECT_NEAR(*DriftOf(readings, same), -0.03, 1e-12);
  EXPECT_NEAR(*DriftOf(readings, second), 980 / 970.0 - 1, 1e-12);
  EXPECT_NEAR(*DriftOf(readings, last), 980 / 970.0 - 1, 1e-12);
}

TEST(Drift, WithoutALaterReadingIsNotKnown) {
  SentinelReadings readings;
  readings.Add(CellAfter("a", 1, 1000));
  EXPECT_FALSE(DriftOf(readings, CellAfter("a", 1, 1000)));
  EXPECT_FALSE(DriftOf(readings, Record()));
}

TEST(Drift, AnotherRunsReadingBetweenMayBeMissing) {
  SentinelReadings readings;
  readings.Add(CellAfter("a", 1, 1000));
  readings.Add(CellAfter("a", 4, 1050));
  EXPECT_NEAR(*DriftOf(readings, CellAfter("a", 1, 1000)), 0.05, 1e-12);
}

TEST(Drift, OtherSeriesAndOtherGpusSayNothing) {
  SentinelReadings readings;
  readings.Add(CellAfter("b", 2, 500));
  readings.Add(CellAfter("a", 2, 500, std::nullopt, "GPU-1"));
  EXPECT_FALSE(DriftOf(readings, CellAfter("a", 1, 1000)));
}

TEST(Drift, ADriftThatNoReadingSupportsIsCleared) {
  Record record;
  record.Set(Field::kDriftRatio, 0.5).IgnoreError();
  SentinelReadings().FillDrift(record);
  EXPECT_FALSE(record.Has(Field::kDriftRatio));
}

}  // namespace
}  // namespace assay
