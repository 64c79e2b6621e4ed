#include "common/measure/moments.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay::measure {
namespace {

TEST(Moments, OfNothingHasNoSpread) {
  const Moments moments;
  EXPECT_EQ(moments.count(), 0);
  EXPECT_EQ(moments.mean(), 0);
  EXPECT_FALSE(moments.StandardDeviation().has_value());
}

TEST(Moments, OneValueHasAMeanAndNoSpread) {
  const Moments moments(std::vector<double>{5});
  EXPECT_DOUBLE_EQ(moments.mean(), 5);
  EXPECT_FALSE(moments.Variance().has_value());
  EXPECT_FALSE(moments.CoefficientOfVariation().has_value());
}

TEST(Moments, SpreadIsTheSamples) {
  const Moments moments(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_DOUBLE_EQ(moments.mean(), 5);
  EXPECT_DOUBLE_EQ(*moments.Variance(), 32.0 / 7);
}

TEST(Moments, SmallSpreadOnALargeOffsetIsKept) {
  const Moments moments(std::vector<double>{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16});
  EXPECT_NEAR(*moments.Variance(), 30, 1e-6);
}

TEST(Moments, VariationOfAZeroMeanIsNotKnown) {
  const Moments moments(std::vector<double>{-1, 1});
  EXPECT_FALSE(moments.CoefficientOfVariation().has_value());
}

TEST(Moments, VariationIsDeviationOverMean) {
  const Moments moments(std::vector<double>{9, 11});
  EXPECT_NEAR(*moments.CoefficientOfVariation(), 0.141421, 1e-6);
}

}  // namespace
}  // namespace assay::measure
