#include "common/results/peaks.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay {
namespace {

using Change = std::pair<Field, Value>;

Record With(Record record, const std::vector<Change>& changes) {
  for (const auto& [field, value] : changes) EXPECT_TRUE(record.Set(field, value).ok());
  return record;
}

// A sound cell of five seconds.
Record Cell(const std::string& model, const std::string& mode, double throughput) {
  return With({}, {{Field::kOutcome, std::string("ok")},
                   {Field::kModel, model},
                   {Field::kMode, mode},
                   {Field::kPrecision, std::string("fp32")},
                   {Field::kCard, std::string("H200")},
                   {Field::kCudaVersion, std::string("13.0")},
                   {Field::kThroughput, throughput},
                   {Field::kSeconds, 5.0},
                   {Field::kHostSeconds, 5.0},
                   {Field::kSteps, int64_t{100}},
                   {Field::kSamples, static_cast<int64_t>(5 * throughput)},
                   {Field::kWorldSize, int64_t{1}}});
}

Record Trained(const std::vector<Change>& changes = {}) {
  return With(With(Cell("resnet50", "train", 1000),
                   {{Field::kFlopsPerSample, 24e9}, {Field::kOperatorBytesPerSample, 200e6}}),
              changes);
}

struct Joined {
  std::optional<double> flops, copy, mfu, bandwidth;
};

Joined Join(const Peaks& peaks, Record record) {
  peaks.Join(record);
  return {record.Number(Field::kPeakFlopsPerSecond), record.Number(Field::kPeakCopyBytesPerSecond),
          record.Number(Field::kMfuRatio), record.Number(Field::kBandwidthRatio)};
}

Peaks H200() {
  Peaks peaks;
  peaks.Add(Cell("gemm", "peak", 48000));
  peaks.Add(Cell("copy", "peak", 4000));
  return peaks;
}

TEST(Peaks, UtilisationIsWorkOfARankOverTheCeiling) {
  const Joined joined = Join(H200(), Trained());
  EXPECT_DOUBLE_EQ(*joined.flops, 48e12);
  EXPECT_DOUBLE_EQ(*joined.copy, 4e12);
  EXPECT_DOUBLE_EQ(*joined.mfu, 0.5);
  EXPECT_DOUBLE_EQ(*joined.bandwidth, 0.05);
  EXPECT_DOUBLE_EQ(*Join(H200(), Trained({{Field::kWorldSize, int64_t{2}}})).mfu, 0.25);
  EXPECT_DOUBLE_EQ(*Join(H200(), Trained({{Field::kColocate, std::string("all")},
                                          {Field::kGpuUuids, std::string("GPU-1;GPU-2")}}))
                        .mfu,
                   0.25);
}

TEST(Peaks, WithoutAPeakNothingIsKnown) {
  const Joined joined = Join(Peaks(), Trained());
  EXPECT_FALSE(joined.flops || joined.copy || joined.mfu || joined.bandwidth);
  Peaks products;
  products.Add(Cell("gemm", "peak", 48000));
  EXPECT_TRUE(Join(products, Trained()).mfu.has_value());
  EXPECT_FALSE(Join(products, Trained()).bandwidth.has_value());
}

TEST(Peaks, OtherCardsCudaVersionsAndPrecisionsAreNoMeasure) {
  EXPECT_FALSE(Join(H200(), Trained({{Field::kCard, std::string("H100")}})).flops.has_value());
  EXPECT_FALSE(
      Join(H200(), Trained({{Field::kCudaVersion, std::string("12.6")}})).flops.has_value());
  const Joined half = Join(H200(), Trained({{Field::kPrecision, std::string("amp-fp16")}}));
  EXPECT_FALSE(half.flops.has_value());
  EXPECT_DOUBLE_EQ(*half.copy, 4e12);
}

TEST(Peaks, SumsInFp16AreNotTheCeilingOfAmp) {
  Peaks peaks;
  peaks.Add(With(Cell("gemm_fp16_accumulate", "peak", 900000),
                 {{Field::kPrecision, std::string("amp-fp16")}}));
  EXPECT_FALSE(
      Join(peaks, Trained({{Field::kPrecision, std::string("amp-fp16")}})).flops.has_value());
}

TEST(Peaks, TheHighestOfSeveralProcessesCounts) {
  Peaks peaks;
  for (const double rate : {47000.0, 48000.0, 46000.0}) peaks.Add(Cell("gemm", "peak", rate));
  EXPECT_DOUBLE_EQ(*Join(peaks, Trained()).flops, 48e12);
}

TEST(Peaks, WhatIsInvalidSimulatedFailedOrNoPeakIsNoCeiling) {
  Peaks peaks;
  peaks.Add(With(Cell("gemm", "peak", 48000), {{Field::kHostSeconds, 6.0}}));
  peaks.Add(With(Cell("gemm", "peak", 48000), {{Field::kSimulated, true}}));
  peaks.Add(With(Cell("gemm", "peak", 48000), {{Field::kOutcome, std::string("fail")}}));
  peaks.Add(Cell("gemm", "train", 48000));
  EXPECT_FALSE(Join(peaks, Trained()).flops.has_value());
}

TEST(Peaks, OfACardThatWasHeldBackThereIsNoCeiling) {
  Peaks peaks;
  peaks.Add(With(Cell("gemm", "peak", 24000),
                 {{Field::kPowerLimitWatts, 350.0}, {Field::kPowerLimitDefaultWatts, 700.0}}));
  peaks.Add(With(Cell("gemm", "peak", 24000), {{Field::kGpuUuids, std::string("GPU-1")},
                                               {Field::kForeignProcesses, std::string("x (1)")}}));
  EXPECT_FALSE(Join(peaks, Trained()).flops.has_value());
}

TEST(Peaks, OfColocatedGpusTheShareOfOneIsTheCeiling) {
  Peaks peaks;
  peaks.Add(With(Cell("gemm", "peak", 96000), {{Field::kColocate, std::string("all")},
                                               {Field::kGpuUuids, std::string("GPU-1;GPU-2")}}));
  EXPECT_DOUBLE_EQ(*Join(peaks, Trained()).flops, 48e12);
}

TEST(Peaks, APeakItselfAndASimulatedCellHaveNoUtilisation) {
  EXPECT_FALSE(Join(H200(), Cell("gemm", "peak", 48000)).flops.has_value());
  EXPECT_FALSE(Join(H200(), Trained({{Field::kSimulated, true}})).mfu.has_value());
}

TEST(Peaks, JoiningAgainForgetsWhatIsNoLongerKnown) {
  Record record = Trained();
  H200().Join(record);
  ASSERT_TRUE(record.Has(Field::kMfuRatio));
  Peaks().Join(record);
  EXPECT_FALSE(record.Has(Field::kMfuRatio));
  EXPECT_FALSE(record.Has(Field::kPeakFlopsPerSecond));
}

}  // namespace
}  // namespace assay
