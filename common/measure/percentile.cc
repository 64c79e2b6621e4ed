#include "common/measure/percentile.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::measure {

std::optional<double> Percentile(std::span<const double> values, double percent) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  const double share = percent > 0 ? std::min(percent, 100.0) / 100 : 0;
  const double place = static_cast<double>(sorted.size() - 1) * share;
  const auto below = static_cast<size_t>(std::floor(place));
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(sorted.begin(), at, sorted.end());
  const double low = *at;
  if (below + 1 >= sorted.size()) return low;
  const double high = *std::min_element(at + 1, sorted.end());
  return low + (place - static_cast<double>(below)) * (high - low);
}

std::optional<double> Median(std::span<const double> values) { return Percentile(values, 50); }

std::optional<double> ScaledMad(std::span<const double> values) {
  const std::optional<double> median = Median(values);
  if (!median) return std::nullopt;
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - *median));
  constexpr double kNormal = 1.4826;  // 1 / (normal quantile of 0.75)
  return kNormal * *Median(deviations);
}

std::vector<double> RobustDeviations(std::span<const double> values) {
  std::vector<double> deviations(values.size());
  const double median = Median(values).value_or(0);
  const double scale = ScaledMad(values).value_or(0);
  if (!(scale > 0)) return deviations;
  for (size_t i = 0; i < values.size(); ++i) deviations[i] = (values[i] - median) / scale;
  return deviations;
}

}  // namespace assay::measure
