// Moments: mean and spread of a stream of values, in one pass and without cancellation.
//
// Welford, "Note on a Method for Calculating Corrected Sums of Squares and Products", Technometrics
// 4 (1962). The standard deviation is the sample's (n - 1).
//
// Std only. Thread rule: one owner. Values must be finite.
#ifndef ASSAY_COMMON_MEASURE_MOMENTS_H_
#define ASSAY_COMMON_MEASURE_MOMENTS_H_

#include <cstdint>
#include <optional>
#include <span>

namespace assay::measure {

class Moments {
 public:
  Moments() = default;
  explicit Moments(std::span<const double> values);

  void Add(double value);
  int64_t count() const { return count_; }
  double mean() const { return mean_; }  // 0 without values
  // Sample variance and standard deviation; nullopt with fewer than two values.
  std::optional<double> Variance() const;
  std::optional<double> StandardDeviation() const;
  // Standard deviation over mean; nullopt with fewer than two values or a mean of 0.
  std::optional<double> CoefficientOfVariation() const;

 private:
  int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // sum of squared deviations from the running mean
};

}  // namespace assay::measure

#endif  // ASSAY_COMMON_MEASURE_MOMENTS_H_
