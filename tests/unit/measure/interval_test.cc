#include "common/measure/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace assay::measure {
namespace {

TEST(MeanInterval, OfOneProcessIsNotKnown) {
  EXPECT_FALSE(MeanInterval(std::vector<double>{812.5}).has_value());
  EXPECT_FALSE(MeanInterval({}).has_value());
}

TEST(MeanInterval, OfThreeProcessesUsesStudentsT) {
  const auto interval = MeanInterval(std::vector<double>{99, 100, 101});
  ASSERT_TRUE(interval.has_value());
  const double half = 4.302653 * 1 / std::sqrt(3.0);
  EXPECT_NEAR(interval->low, 100 - half, 1e-5);
  EXPECT_NEAR(interval->high, 100 + half, 1e-5);
}

TEST(MeanInterval, OfEqualProcessesHasNoWidth) {
  const auto interval = MeanInterval(std::vector<double>{5, 5, 5});
  ASSERT_TRUE(interval.has_value());
  EXPECT_EQ(interval->HalfWidth(), 0);
}

// What 95 % means: of many repetitions, the interval holds the true mean in 95 of 100.
TEST(MeanInterval, CoversTheTrueMeanAsOftenAsItSays) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(1000, 20);
  int covered = 0;
  constexpr int kTries = 4000;
  for (int i = 0; i < kTries; ++i) {
    const auto interval =
        MeanInterval(std::vector<double>{normal(random), normal(random), normal(random)});
    covered += interval->low <= 1000 && 1000 <= interval->high ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(covered) / kTries, 0.95, 0.012);
}

TEST(RatioOfMeans, OfOneProcessEachHasNoInterval) {
  const auto ratio = RatioOfMeans(std::vector<double>{183}, std::vector<double>{100});
  ASSERT_TRUE(ratio.has_value());
  EXPECT_NEAR(ratio->value, 1.83, 1e-12);
  EXPECT_FALSE(ratio->interval.has_value());
}

TEST(RatioOfMeans, NeedsTwoProcessesOnBothSides) {
  const auto ratio = RatioOfMeans(std::vector<double>{180, 186}, std::vector<double>{100});
  ASSERT_TRUE(ratio.has_value());
  EXPECT_FALSE(ratio->interval.has_value());
}

TEST(RatioOfMeans, TurnedOverIsTheReciprocal) {
  const std::vector<double> a = {180, 183, 186};
  const std::vector<double> b = {100, 101, 98, 99};
  const auto ratio = RatioOfMeans(a, b);
  const auto turned = RatioOfMeans(b, a);
  EXPECT_NEAR(ratio->value * turned->value, 1, 1e-12);
  EXPECT_NEAR(ratio->interval->low * turned->interval->high, 1, 1e-12);
  EXPECT_LT(ratio->interval->low, ratio->value);
  EXPECT_GT(ratio->interval->high, ratio->value);
}

// Case 36: a zero is missing, never a number, so a ratio with one is none.
TEST(RatioOfMeans, WithAZeroIsMissing) {
  const std::vector<double> sound = {100, 101};
  EXPECT_FALSE(RatioOfMeans(std::vector<double>{0, 100}, sound).has_value());
  EXPECT_FALSE(RatioOfMeans(sound, std::vector<double>{0, 100}).has_value());
  EXPECT_FALSE(RatioOfMeans(sound, std::vector<double>{-1, 100}).has_value());
  EXPECT_FALSE(RatioOfMeans(sound, {}).has_value());
  EXPECT_FALSE(RatioOfMeans(std::vector<double>{NAN}, sound).has_value());
}

TEST(RatioOfMeans, OfProcessesWithoutSpreadHasNoWidth) {
  const auto ratio = RatioOfMeans(std::vector<double>{2, 2}, std::vector<double>{1, 1});
  ASSERT_TRUE(ratio->interval.has_value());
  EXPECT_DOUBLE_EQ(ratio->interval->low, 2);
  EXPECT_DOUBLE_EQ(ratio->interval->high, 2);
}

TEST(RatioOfMeans, OfVanishingSpreadIsFinite) {
  const std::vector<double> nearly = {1, 1 + 1e-15};
  const auto ratio = RatioOfMeans(nearly, nearly);
  ASSERT_TRUE(ratio->interval.has_value());
  EXPECT_TRUE(std::isfinite(ratio->interval->low));
  EXPECT_TRUE(std::isfinite(ratio->interval->high));
}

TEST(BatchMeans, BelowTwentyStepsABatchAreNotKnown) {
  const std::vector<double> steps(99, 0.04);
  EXPECT_FALSE(BatchMeansOf(steps).has_value());
}

TEST(BatchMeans, OfAHundredStepsAreFiveBatches) {
  const std::vector<double> steps(100, 0.04);
  const auto means = BatchMeansOf(steps);
  ASSERT_TRUE(means.has_value());
  EXPECT_EQ(means->batches, 5);
  EXPECT_EQ(means->batch_steps, 20);
  EXPECT_NEAR(means->mean, 0.04, 1e-12);
  EXPECT_NEAR(means->half_width_ratio, 0, 1e-12);
}

TEST(BatchMeans, OfManyStepsAreThirtyLongerBatches) {
  const std::vector<double> steps(30 * 1000 + 17, 0.001);
  const auto means = BatchMeansOf(steps);
  EXPECT_EQ(means->batches, 30);
  EXPECT_EQ(means->batch_steps, 1000);
}

TEST(BatchMeans, LeaveTheRemainderOutAtTheFront) {
  std::vector<double> steps(19, 100.0);
  steps.resize(119, 1.0);
  const auto means = BatchMeansOf(steps);
  ASSERT_TRUE(means.has_value());
  EXPECT_DOUBLE_EQ(means->mean, 1);
}

// Correlated steps: the interval of the steps as if independent would be several times too small.
TEST(BatchMeans, OfCorrelatedStepsAreWiderThanOfIndependentOnes) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> steps;
  double drift = 0;
  for (int i = 0; i < 6000; ++i) {
    drift = 0.95 * drift + normal(random);
    steps.push_back(100 + drift);
  }
  const auto batched = BatchMeansOf(steps);
  const auto naive = MeanInterval(steps);
  EXPECT_GT(batched->half_width_ratio, 3 * naive->HalfWidth() / 100);
}

TEST(GeometricMeanOfRatios, OfOneWorkloadIsItsRatio) {
  const std::vector<double> values = {200, 202, 198}, base = {100, 99, 102};
  const LogSides sides{*LogMean(values), *LogMean(base)};
  const auto mean = GeometricMeanOfRatios({&sides, 1});
  const auto ratio = RatioOfMeans(values, base);
  ASSERT_TRUE(mean.has_value() && mean->interval.has_value());
  EXPECT_DOUBLE_EQ(mean->value, ratio->value);
  EXPECT_DOUBLE_EQ(mean->interval->low, ratio->interval->low);
}

TEST(GeometricMeanOfRatios, WeighsEveryWorkloadTheSame) {
  const auto of = [](double values, double base) {
    return LogSides{*LogMean(std::vector<double>{values, values}),
                    *LogMean(std::vector<double>{base, base})};
  };
  // 2 and 8: sqrt(16).
  const auto mean = GeometricMeanOfRatios(std::vector<LogSides>{of(20, 10), of(8000, 1000)});
  ASSERT_TRUE(mean.has_value());
  EXPECT_NEAR(mean->value, 4, 1e-12);
}

TEST(GeometricMeanOfRatios, OneSideOfOneProcessLeavesNoInterval) {
  const LogSides sure{*LogMean(std::vector<double>{2, 2.1}), *LogMean(std::vector<double>{1, 1.1})};
  const LogSides unsure{*LogMean(std::vector<double>{2}), *LogMean(std::vector<double>{1, 1.1})};
  const auto mean = GeometricMeanOfRatios(std::vector<LogSides>{sure, unsure});
  ASSERT_TRUE(mean.has_value());
  EXPECT_FALSE(mean->interval.has_value());
  EXPECT_FALSE(GeometricMeanOfRatios({}).has_value());
}

// Case 36: a zero is missing, and must be left out before.
TEST(LogMean, OfAZeroIsNothing) {
  EXPECT_FALSE(LogMean(std::vector<double>{100, 0}).has_value());
  EXPECT_FALSE(LogMean({}).has_value());
  EXPECT_FALSE(LogMedian(std::vector<double>{-1, 5, 6}).has_value());
}

TEST(LogMedian, OneOddDeviceDoesNotMoveIt) {
  const auto median = LogMedian(std::vector<double>{100, 101, 12});
  EXPECT_NEAR(std::exp(median->mean), 100, 1e-9);
}

}  // namespace
}  // namespace assay::measure
