// Intervals: how sure a mean and a ratio of means are.
//
// Replication is a fresh process, so intervals of a table come from process means
// (MeanInterval, RatioOfMeans). BatchMeansRatio looks inside one process and decides only when to
// stop.
//
// Std only. Thread rule: pure functions, any thread. Values must be finite.
#ifndef ASSAY_COMMON_MEASURE_INTERVAL_H_
#define ASSAY_COMMON_MEASURE_INTERVAL_H_

#include <cstdint>
#include <optional>
#include <span>

namespace assay::measure {

struct Interval {
  double low = 0;
  double high = 0;
  double HalfWidth() const { return (high - low) / 2; }
};

// Two-sided 95 % interval of the mean of independent, about normal values: mean +- t(0.975, k - 1)
// * s / sqrt(k) (Student, "The Probable Error of a Mean", Biometrika 6 (1908)). nullopt for fewer
// than two values: one process says nothing about the next.
std::optional<Interval> MeanInterval(std::span<const double> values);

struct Ratio {
  double value = 0;
  std::optional<Interval> interval;  // absent unless both sides have at least two values
};

// How many times `values` is `base`: the quotient of the geometric means, with the 95 % interval of
// the difference of the logarithms by Welch's test and Satterthwaite's degrees of freedom (Welch,
// "The Generalization of Student's Problem", Biometrika 34 (1947)). On logarithms because a ratio
// is symmetric there: the interval of base over values is the reciprocal of this one. nullopt where
// a side is empty or has a value that is not above zero.
std::optional<Ratio> RatioOfMeans(std::span<const double> values, std::span<const double> base);

// Non-overlapping batch means (Schmeiser, "Batch Size Effects in the Analysis of Simulation
// Output", Operations Research 30 (1982)). Steps follow one another and are correlated, so that s /
// sqrt(n) of the steps is too small; means of batches of consecutive steps are nearly independent.
struct BatchMeans {
  int64_t batch_steps = 0;
  int64_t batches = 0;
  double mean = 0;
  // Half width of the 95 % interval over the mean. The same for the mean step time and, to first
  // order, for the throughput.
  double half_width_ratio = 0;
};

// With batches of at least `least_batch_steps` steps, of which there are at most `most_batches`; a
// remainder is left out at the front, where warming would still show. nullopt for fewer than
// `least_batches` batches or a mean that is not above zero.
std::optional<BatchMeans> BatchMeansOf(std::span<const double> step_seconds,
                                       int64_t least_batch_steps = 20, int64_t least_batches = 5,
                                       int64_t most_batches = 30);

}  // namespace assay::measure

#endif  // ASSAY_COMMON_MEASURE_INTERVAL_H_
