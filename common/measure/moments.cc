#include "common/measure/moments.h"

#include <cmath>

namespace assay::measure {

Moments::Moments(std::span<const double> values) {
  for (const double value : values) Add(value);
}

void Moments::Add(double value) {
  ++count_;
  const double from_old_mean = value - mean_;
  mean_ += from_old_mean / static_cast<double>(count_);
  squares_ += from_old_mean * (value - mean_);
}

std::optional<double> Moments::Variance() const {
  if (count_ < 2) return std::nullopt;
  return squares_ / static_cast<double>(count_ - 1);
}

std::optional<double> Moments::StandardDeviation() const {
  const std::optional<double> variance = Variance();
  if (!variance) return std::nullopt;
  return std::sqrt(*variance);
}

std::optional<double> Moments::CoefficientOfVariation() const {
  const std::optional<double> deviation = StandardDeviation();
  if (!deviation || mean_ == 0) return std::nullopt;
  return *deviation / std::abs(mean_);
}

}  // namespace assay::measure
