#include "common/measure/busy_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace assay::measure {
namespace {

TEST(UnionNanoseconds, OverlapCountsOnce) {
  EXPECT_EQ(UnionNanoseconds({{0, 10}, {5, 15}}), 15);
  EXPECT_EQ(UnionNanoseconds({{0, 100}, {10, 20}, {30, 40}}), 100);
  EXPECT_EQ(UnionNanoseconds({{0, 10}, {0, 10}, {0, 10}}), 10);
}

TEST(UnionNanoseconds, GapsAreLeftOut) {
  EXPECT_EQ(UnionNanoseconds({{0, 10}, {20, 30}}), 20);
  EXPECT_EQ(UnionNanoseconds({{0, 10}, {10, 30}}), 30);
}

TEST(UnionNanoseconds, OrderDoesNotMatter) {
  EXPECT_EQ(UnionNanoseconds({{20, 30}, {0, 10}, {5, 22}}), 30);
}

TEST(UnionNanoseconds, SpansBeforeZeroOfTheClockAndEmptyOnes) {
  EXPECT_EQ(UnionNanoseconds({{-20, -10}, {-15, 5}}), 25);
  EXPECT_EQ(UnionNanoseconds({{7, 7}, {9, 3}}), 0);
  EXPECT_EQ(UnionNanoseconds({}), 0);
}

// Against counting every nanosecond.
TEST(UnionNanoseconds, IsTheCountOfNanosecondsWithWork) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<Span> spans;
    std::vector<bool> busy(300, false);
    for (int i = 0; i < 1 + round % 40; ++i) {
      const int64_t begin = static_cast<int64_t>(random() % 250);
      const int64_t end = begin + static_cast<int64_t>(random() % 50);
      spans.push_back({begin, end});
      for (int64_t at = begin; at < end; ++at) busy[static_cast<size_t>(at)] = true;
    }
    EXPECT_EQ(UnionNanoseconds(spans), std::count(busy.begin(), busy.end(), true));
  }
}

TEST(BusyRatio, IsOfTheStepThatNothingTraced) {
  // Two steps of 10 ms with 6 ms of work each, spread by tracing over twice the time.
  const std::vector<Span> spans = {{0, 6'000'000}, {20'000'000, 26'000'000}};
  EXPECT_DOUBLE_EQ(*BusyRatio(spans, 2, 0.010), 0.6);
}

TEST(BusyRatio, IsAtMostOne) { EXPECT_DOUBLE_EQ(*BusyRatio({{0, 21'000'000}}, 2, 0.010), 1.0); }

TEST(BusyRatio, IsNotThereWithoutATrace) {
  EXPECT_FALSE(BusyRatio({}, 2, 0.010).has_value());
  EXPECT_FALSE(BusyRatio({{0, 10}}, 0, 0.010).has_value());
  EXPECT_FALSE(BusyRatio({{0, 10}}, 2, 0).has_value());
}

}  // namespace
}  // namespace assay::measure
