#include "common/measure/stopping_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace assay::measure {
namespace {

StopReason RunToStop(StoppingRule& rule, const std::function<double()>& next) {
  for (int i = 0; i < 10000000; ++i) {
    if (const auto reason = rule.Add(next())) return *reason;
  }
  ADD_FAILURE() << "did not stop";
  return StopReason::kMaxSteps;
}

TEST(StoppingRule, EqualStepsStopAtTheMinimumSeconds) {
  StoppingRule rule(StopOptions{});
  EXPECT_EQ(RunToStop(rule, [] { return 0.01; }), StopReason::kConfidence);
  EXPECT_NEAR(rule.seconds(), 5, 0.011);
}

TEST(StoppingRule, NeverStopsBelowTheMinimumSeconds) {
  StoppingRule rule(StopOptions{.min_seconds = 3});
  for (int i = 0; i < 299; ++i) EXPECT_FALSE(rule.Add(0.01).has_value());
}

TEST(StoppingRule, LooksAgainOnlyWhenTheTimeHasDoubled) {
  // One step of a second makes the interval 42 % at 5 s and 20 % at 10 s; in between nobody looks.
  StoppingRule rule(StopOptions{.confidence = 0.35});
  const auto next = [&] { return rule.steps() == 50 ? 1.0 : 0.01; };
  EXPECT_EQ(RunToStop(rule, next), StopReason::kConfidence);
  EXPECT_NEAR(rule.seconds(), 10, 0.011);
}

TEST(StoppingRule, NoisyStepsStopAtTheCap) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> spread(0.001, 0.2);
  StoppingRule rule(StopOptions{.confidence = 0.0001});
  EXPECT_EQ(RunToStop(rule, [&] { return spread(random); }), StopReason::kMaxSeconds);
  EXPECT_NEAR(rule.seconds(), 60, 0.2);
}

// A step of a CPU takes seconds: there are never five batches of twenty, and no pretended interval.
TEST(StoppingRule, SlowStepsStopAtTheCapWithoutAnInterval) {
  StoppingRule rule(StopOptions{});
  EXPECT_EQ(RunToStop(rule, [] { return 3.0; }), StopReason::kMaxSeconds);
  EXPECT_EQ(rule.steps(), 20);
  EXPECT_FALSE(rule.CurrentInterval().has_value());
}

TEST(StoppingRule, OneStepLongerThanTheCapStops) {
  StoppingRule rule(StopOptions{.max_seconds = 10});
  EXPECT_EQ(rule.Add(45), StopReason::kMaxSeconds);
  EXPECT_EQ(rule.steps(), 1);
}

TEST(StoppingRule, ALookAtTheCapCanStillConverge) {
  // 100 steps are full at 7 s, after the look at 5 s; the cap comes before the next look at 10 s.
  StoppingRule rule(StopOptions{.min_seconds = 5, .max_seconds = 8});
  EXPECT_EQ(RunToStop(rule, [] { return 0.07; }), StopReason::kConfidence);
  EXPECT_NEAR(rule.seconds(), 8, 0.07);
}

TEST(StoppingRule, StopsAtTheStepCap) {
  StoppingRule rule(StopOptions{.max_steps = 12});
  EXPECT_EQ(RunToStop(rule, [] { return 0.01; }), StopReason::kMaxSteps);
  EXPECT_EQ(rule.steps(), 12);
}

TEST(StoppingRule, WithoutAConfidenceRunsToTheCap) {
  StoppingRule rule(StopOptions{.confidence = 0});
  EXPECT_EQ(RunToStop(rule, [] { return 0.01; }), StopReason::kMaxSeconds);
}

TEST(StoppingRule, WithoutAMinimumStillNeedsItsBatches) {
  StoppingRule rule(StopOptions{.min_seconds = 0});
  EXPECT_EQ(RunToStop(rule, [] { return 0.001; }), StopReason::kConfidence);
  EXPECT_GE(rule.steps(), 100);
}

TEST(StoppingRule, TheReasonStays) {
  StoppingRule rule(StopOptions{.max_steps = 2});
  rule.Add(1);
  rule.Add(1);
  EXPECT_EQ(rule.Add(1), StopReason::kMaxSteps);
  EXPECT_EQ(rule.steps(), 2);
}

TEST(StoppingRule, SecondsLeftCountDownToTheCap) {
  StoppingRule rule(StopOptions{.max_seconds = 60});
  EXPECT_EQ(rule.SecondsLeft(), 60);
  rule.Add(45);
  EXPECT_EQ(rule.SecondsLeft(), 15);
  rule.Add(45);
  EXPECT_EQ(rule.SecondsLeft(), 0);
}

TEST(StoppingRule, ValuesThatAreNoLengthCountAsNothing) {
  StoppingRule rule(StopOptions{});
  EXPECT_FALSE(rule.Add(NAN).has_value());
  EXPECT_FALSE(rule.Add(INFINITY).has_value());
  EXPECT_FALSE(rule.Add(-1).has_value());
  EXPECT_EQ(rule.seconds(), 0);
}

TEST(StoppingRule, ReasonsAreSpelledAsTheField) {
  EXPECT_EQ(StopReasonName(StopReason::kConfidence), "confidence");
  EXPECT_EQ(StopReasonName(StopReason::kMaxSeconds), "max_seconds");
  EXPECT_EQ(StopReasonName(StopReason::kMaxSteps), "max_steps");
}

// How often the interval at which the rule stopped holds the truth. Looking several times costs
// some of the 95 %; the doubling keeps it above 90.
TEST(StoppingRule, StopsWithAnIntervalThatHoldsTheTruth) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(0.05, 0.005);
  int covered = 0;
  constexpr int kTries = 400;
  for (int i = 0; i < kTries; ++i) {
    StoppingRule rule(StopOptions{.confidence = 0.012, .min_seconds = 5, .max_seconds = 60});
    RunToStop(rule, [&] { return std::max(normal(random), 0.001); });
    const auto interval = rule.CurrentInterval();
    ASSERT_TRUE(interval.has_value());
    covered += std::abs(interval->mean / 0.05 - 1) <= interval->half_width_ratio ? 1 : 0;
  }
  EXPECT_GT(static_cast<double>(covered) / kTries, 0.90);
}

}  // namespace
}  // namespace assay::measure
