#include "common/measure/steady_test.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::measure {
namespace {

// Feeds `step` until the test is done; the number of steps it took, at most a million.
int64_t FeedUntilDone(SteadyTest& test, double step) {
  while (!test.Done() && test.steps() < 1000000) test.Add(step);
  return test.steps();
}

TEST(SteadyTest, EqualStepsAreSteadyAfterTheMinimumSeconds) {
  SteadyTest test(SteadyOptions{});
  FeedUntilDone(test, 0.04);
  EXPECT_EQ(test.state(), Steadiness::kSteady);
  EXPECT_NEAR(test.seconds(), 2.0, 0.04);
}

// Case 28: by time as well as by steps.
TEST(SteadyTest, ManyFastStepsDoNotShortenTheMinimumSeconds) {
  SteadyTest test(SteadyOptions{});
  for (int i = 0; i < 1000; ++i) test.Add(0.001);
  EXPECT_EQ(test.state(), Steadiness::kWarming);
}

TEST(SteadyTest, SlowStepsStillNeedTheMinimumSteps) {
  SteadyTest test(SteadyOptions{.min_steps = 8});
  EXPECT_EQ(FeedUntilDone(test, 1.5), 8);
  EXPECT_EQ(test.state(), Steadiness::kSteady);
}

// Case 29: the first step searches algorithms for 15 s; it must be over before measuring begins.
TEST(SteadyTest, TheFirstLongStepsAreLeftBehind) {
  SteadyTest test(SteadyOptions{});
  test.Add(15);
  EXPECT_EQ(test.state(), Steadiness::kWarming);
  test.Add(0.3);
  FeedUntilDone(test, 0.04);
  EXPECT_EQ(test.state(), Steadiness::kSteady);
  EXPECT_GT(test.seconds(), 15.3 + 2 * 0.5);
}

// Case 29: an outlier of eight times is no reason to wait on.
TEST(SteadyTest, OneOutlierInAWindowDoesNotMatter) {
  SteadyTest test(SteadyOptions{});
  for (int i = 0; !test.Done(); ++i) test.Add(i % 10 == 3 ? 0.32 : 0.04);
  EXPECT_EQ(test.state(), Steadiness::kSteady);
  EXPECT_LT(test.seconds(), 3);
}

// Case 28: a card that slows down by 2 % a second is not steady until it has.
TEST(SteadyTest, StepsThatGrowAreNotSteadyUntilTheyHaveGrown) {
  SteadyTest test(SteadyOptions{});
  while (!test.Done() && test.seconds() < 20) {
    test.Add(0.04 * (1 + 0.03 * std::min(test.seconds(), 10.0)));
  }
  EXPECT_EQ(test.state(), Steadiness::kSteady);
  EXPECT_GT(test.seconds(), 10);
}

TEST(SteadyTest, StepsThatNeverAgreeEndAtTheCapAndSaySo) {
  SteadyTest test(SteadyOptions{.max_seconds = 10});
  for (int i = 0; !test.Done(); ++i) {
    ASSERT_LT(test.seconds(), 20);
    test.Add(0.5 + 0.3 * (i % 2));
  }
  EXPECT_EQ(test.state(), Steadiness::kGaveUp);
}

TEST(SteadyTest, OneStepLongerThanTheCapEndsIt) {
  SteadyTest test(SteadyOptions{.max_seconds = 10});
  EXPECT_EQ(test.Add(30), Steadiness::kGaveUp);
}

TEST(SteadyTest, AnAnswerStays) {
  SteadyTest test(SteadyOptions{});
  FeedUntilDone(test, 0.04);
  const int64_t steps = test.steps();
  EXPECT_EQ(test.Add(100), Steadiness::kSteady);
  EXPECT_EQ(test.steps(), steps);
}

TEST(SteadyTest, ValuesThatAreNoLengthCountAsNothing) {
  SteadyTest test(SteadyOptions{});
  test.Add(NAN);
  test.Add(-5);
  test.Add(INFINITY);
  EXPECT_EQ(test.seconds(), 0);
  FeedUntilDone(test, 0.04);
  EXPECT_EQ(test.state(), Steadiness::kSteady);
}

}  // namespace
}  // namespace assay::measure
