#include "common/results/scaling.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using Means = std::vector<double>;

// Base of 100 in two lanes and a gang of four.
std::vector<bool> Judged(const Means& gang) {
  static const Means kSlower = {60, 61, 62}, kBase = {99.9, 100, 100.1};
  const std::vector<ScalingRow> rows = {{"a", 1, kSlower}, {"a", 1, kBase}, {"a", 4, gang}};
  return SuspectScaling(rows);
}

TEST(Scaling, AGangSurelyAboveLinearIsSuspect) {
  EXPECT_EQ(Judged({424, 425, 426}), (std::vector<bool>{false, false, true}));
}

TEST(Scaling, OneWhoseIntervalReachesTheLimitIsNot) {
  EXPECT_EQ(Judged({419, 420, 421}), std::vector<bool>(3, false));
  EXPECT_EQ(Judged({400, 440, 450}), std::vector<bool>(3, false));
}

TEST(Scaling, TheBestLaneIsTheBase) {
  // 390 is 6.4 times the slower lane.
  EXPECT_EQ(Judged({389, 390, 391}), std::vector<bool>(3, false));
}

TEST(Scaling, WithoutAnIntervalOrABaseThereIsNoClaim) {
  EXPECT_EQ(Judged({500}), std::vector<bool>(3, false));
  EXPECT_EQ(Judged({}), std::vector<bool>(3, false));
  const Means gang = {900, 901};
  const std::vector<ScalingRow> rows = {{"a", 4, gang}};
  EXPECT_EQ(SuspectScaling(rows), std::vector<bool>{false});
}

}  // namespace
}  // namespace assay
