#include "common/measure/interval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "common/measure/moments.h"
#include "common/measure/percentile.h"
#include "common/measure/student_t.h"

namespace assay::measure {
namespace {

constexpr double kTwoSided95 = 0.975;

std::optional<std::vector<double>> LogsOf(std::span<const double> values) {
  std::vector<double> logs;
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) return std::nullopt;
    logs.push_back(std::log(value));
  }
  if (logs.empty()) return std::nullopt;
  return logs;
}

}  // namespace

std::optional<Interval> MeanInterval(std::span<const double> values) {
  const Moments moments(values);
  const std::optional<double> deviation = moments.StandardDeviation();
  if (!deviation) return std::nullopt;
  const auto k = static_cast<double>(moments.count());
  const double half = StudentTQuantile(kTwoSided95, k - 1) * *deviation / std::sqrt(k);
  return Interval{moments.mean() - half, moments.mean() + half};
}

std::optional<LogEstimate> LogMean(std::span<const double> values) {
  const std::optional<std::vector<double>> logs = LogsOf(values);
  if (!logs) return std::nullopt;
  const Moments moments(*logs);
  const auto count = static_cast<double>(moments.count());
  LogEstimate estimate{moments.mean(), std::nullopt, count - 1};
  if (const auto variance = moments.Variance()) estimate.variance = *variance / count;
  return estimate;
}

std::optional<LogEstimate> LogMedian(std::span<const double> values) {
  std::optional<LogEstimate> estimate = LogMean(values);
  constexpr size_t kMeanIsMedian = 2;
  if (!estimate || values.size() <= kMeanIsMedian) return estimate;
  estimate->mean = *Median(*LogsOf(values));
  *estimate->variance *= std::numbers::pi / 2;
  return estimate;
}

std::optional<Ratio> RatioOfMeans(std::span<const double> values, std::span<const double> base) {
  const std::optional<LogEstimate> top = LogMean(values);
  const std::optional<LogEstimate> bottom = LogMean(base);
  if (!top || !bottom) return std::nullopt;
  const LogSides sides{*top, *bottom};
  return GeometricMeanOfRatios({&sides, 1});
}

LogEstimate MeanOfEstimates(std::span<const LogEstimate> estimates) {
  const auto count = static_cast<double>(estimates.size());
  LogEstimate mean;
  double variance = 0, squares = 0, least_freedom = estimates.front().freedom;
  bool all_known = true;
  for (const LogEstimate& estimate : estimates) {
    mean.mean += estimate.mean / count;
    all_known = all_known && estimate.variance && estimate.freedom > 0;
    if (!all_known) continue;
    variance += *estimate.variance;
    squares += *estimate.variance * *estimate.variance / estimate.freedom;
    least_freedom = std::min(least_freedom, estimate.freedom);
  }
  if (!all_known) return mean;
  mean.variance = variance / (count * count);
  const double freedom = variance * variance / squares;
  // Variances so small that their squares vanish leave no degrees of freedom to compute; the least
  // there can be is the smallest one's.
  mean.freedom = std::isfinite(freedom) ? freedom : least_freedom;
  return mean;
}

std::optional<Ratio> GeometricMeanOfRatios(std::span<const LogSides> workloads) {
  if (workloads.empty()) return std::nullopt;
  std::vector<LogEstimate> values, bases;
  for (const LogSides& sides : workloads) {
    values.push_back(sides.values);
    bases.push_back(sides.base);
  }
  const std::array sides = {MeanOfEstimates(values), MeanOfEstimates(bases)};
  const double difference = sides[0].mean - sides[1].mean;
  Ratio ratio{std::exp(difference), std::nullopt};
  if (!sides[0].variance || !sides[1].variance) return ratio;
  // Twice the mean of one side and the other with its sign turned is their difference.
  const LogEstimate half_difference = MeanOfEstimates(sides);
  const double half = StudentTQuantile(kTwoSided95, half_difference.freedom) * 2 *
                      std::sqrt(*half_difference.variance);
  ratio.interval = Interval{std::exp(difference - half), std::exp(difference + half)};
  return ratio;
}

std::optional<BatchMeans> BatchMeansOf(std::span<const double> step_seconds,
                                       int64_t least_batch_steps, int64_t least_batches,
                                       int64_t most_batches) {
  const auto steps = static_cast<int64_t>(step_seconds.size());
  const int64_t least_size = std::max<int64_t>(least_batch_steps, 1);
  const int64_t most = std::max<int64_t>(most_batches, 2);
  const int64_t size = std::max(least_size, steps / most);
  const int64_t batches = std::min(steps / size, most);
  if (batches < std::max<int64_t>(least_batches, 2)) return std::nullopt;

  Moments means;
  size_t at = static_cast<size_t>(steps - batches * size);
  for (int64_t batch = 0; batch < batches; ++batch) {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += step_seconds[at++];
    means.Add(sum / static_cast<double>(size));
  }
  if (!(means.mean() > 0)) return std::nullopt;
  const auto k = static_cast<double>(batches);
  const double half =
      StudentTQuantile(kTwoSided95, k - 1) * *means.StandardDeviation() / std::sqrt(k);
  return BatchMeans{size, batches, means.mean(), half / means.mean()};
}

}  // namespace assay::measure
