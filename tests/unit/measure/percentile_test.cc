#include "common/measure/percentile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace assay::measure {
namespace {

TEST(Percentile, NothingGivesNothing) {
  EXPECT_FALSE(Percentile({}, 50).has_value());
  EXPECT_FALSE(Median({}).has_value());
  EXPECT_FALSE(ScaledMad({}).has_value());
}

TEST(Percentile, InterpolatesBetweenClosestRanks) {
  const std::vector<double> values = {15, 20, 35, 40, 50};
  EXPECT_DOUBLE_EQ(*Percentile(values, 40), 29);  // h = 1.6: 20 + 0.6 * 15
  EXPECT_DOUBLE_EQ(*Percentile(values, 95), 48);  // h = 3.8: 40 + 0.8 * 10
}

TEST(Percentile, IsIndifferentToOrder) {
  const std::vector<double> values = {50, 15, 40, 20, 35};
  EXPECT_DOUBLE_EQ(*Percentile(values, 40), 29);
}

TEST(Percentile, EndsAreLeastAndGreatest) {
  const std::vector<double> values = {3, 1, 2};
  EXPECT_DOUBLE_EQ(*Percentile(values, 0), 1);
  EXPECT_DOUBLE_EQ(*Percentile(values, 100), 3);
  EXPECT_DOUBLE_EQ(*Percentile(values, -5), 1);
  EXPECT_DOUBLE_EQ(*Percentile(values, 300), 3);
}

TEST(Percentile, OneValueIsEveryPercentile) {
  const std::vector<double> values = {7};
  EXPECT_DOUBLE_EQ(*Percentile(values, 1), 7);
  EXPECT_DOUBLE_EQ(*Percentile(values, 99), 7);
}

TEST(Median, OfAnEvenCountIsTheMiddleOfTwo) {
  EXPECT_DOUBLE_EQ(*Median(std::vector<double>{4, 1, 3, 2}), 2.5);
}

// Case 29: one step eight times too long moves the mean, not the median and its spread.
TEST(Median, DoesNotMoveForOneOutlier) {
  const std::vector<double> steps = {10.8, 10.7, 10.9, 10.8, 86.4, 10.8, 10.7, 10.9, 10.8};
  EXPECT_DOUBLE_EQ(*Median(steps), 10.8);
  EXPECT_NEAR(*ScaledMad(steps), 0.148, 0.001);
}

TEST(ScaledMad, EstimatesTheNormalDeviation) {
  // Quartiles of a normal distribution lie at 0.6745 deviations.
  EXPECT_NEAR(*ScaledMad(std::vector<double>{-6.745, 0, 6.745}), 10, 0.001);
}

TEST(RobustDeviations, TheOddOneOutDoesNotHideItself) {
  // Median 100, absolute deviations 1, 0, 1, 2, 40: their median is 1.
  const std::vector<double> values = {99, 100, 101, 102, 60};
  EXPECT_THAT(RobustDeviations(values),
              ::testing::ElementsAre(::testing::DoubleNear(-1 / 1.4826, 1e-12), 0,
                                     ::testing::DoubleNear(1 / 1.4826, 1e-12),
                                     ::testing::DoubleNear(2 / 1.4826, 1e-12),
                                     ::testing::DoubleNear(-40 / 1.4826, 1e-12)));
  EXPECT_THAT(RobustDeviations(std::vector<double>{7, 7, 7, 9}), ::testing::Each(0.0));
}

}  // namespace
}  // namespace assay::measure
