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

// What is known of one side of a ratio, as logarithms, where errors of ratios add.
struct LogEstimate {
  double mean = 0;
  // Variance of `mean`, with its degrees of freedom; absent for a single value.
  std::optional<double> variance;
  double freedom = 0;
};

// Of the geometric mean of independent processes. nullopt where there is none or a value is not
// above zero.
std::optional<LogEstimate> LogMean(std::span<const double> values);

// Of the median of several devices, each with one value. The variance is that of the mean times
// pi / 2, what the median of many normal values has (Kenney and Keeping, "Mathematics of
// Statistics" (1962), page 211); of few it has less, so that the interval errs to the wide side.
// Of two devices the median is the mean. nullopt as LogMean.
std::optional<LogEstimate> LogMedian(std::span<const double> values);

// Mean of independent estimates, each weighing the same, with Satterthwaite's degrees of freedom;
// without a variance where one of them has none. Not of nothing.
LogEstimate MeanOfEstimates(std::span<const LogEstimate> estimates);

struct LogSides {
  LogEstimate values, base;
};

// Geometric mean of the ratios of several workloads, with the 95 % interval by Welch and
// Satterthwaite over all sides: how sure the mean over just these workloads is, not what another
// workload would show. Every workload weighs the same. Of one workload it is RatioOfMeans. nullopt
// for none; no interval where a side has no variance.
std::optional<Ratio> GeometricMeanOfRatios(std::span<const LogSides> workloads);

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
