#include "common/measure/interval.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/measure/moments.h"
#include "common/measure/student_t.h"

namespace assay::measure {
namespace {

constexpr double kTwoSided95 = 0.975;

std::optional<Moments> MomentsOfLogs(std::span<const double> values) {
  Moments logs;
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) return std::nullopt;
    logs.Add(std::log(value));
  }
  if (logs.count() == 0) return std::nullopt;
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

std::optional<Ratio> RatioOfMeans(std::span<const double> values, std::span<const double> base) {
  const std::optional<Moments> top = MomentsOfLogs(values);
  const std::optional<Moments> bottom = MomentsOfLogs(base);
  if (!top || !bottom) return std::nullopt;
  const double difference = top->mean() - bottom->mean();
  Ratio ratio{std::exp(difference), std::nullopt};
  if (top->count() < 2 || bottom->count() < 2) return ratio;

  const auto top_count = static_cast<double>(top->count());
  const auto bottom_count = static_cast<double>(bottom->count());
  const double top_part = *top->Variance() / top_count;
  const double bottom_part = *bottom->Variance() / bottom_count;
  const double variance = top_part + bottom_part;
  if (!(variance > 0)) {
    ratio.interval = Interval{ratio.value, ratio.value};
    return ratio;
  }
  const double freedom =
      variance * variance /
      (top_part * top_part / (top_count - 1) + bottom_part * bottom_part / (bottom_count - 1));
  // Variances so small that their squares vanish leave no degrees of freedom to compute; the least
  // there can be is the smaller side's.
  const double least = std::min(top_count, bottom_count) - 1;
  const double half =
      StudentTQuantile(kTwoSided95, std::isfinite(freedom) ? freedom : least) * std::sqrt(variance);
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
