// Percentiles and robust spread of step times.
//
// Definition: linear interpolation between closest ranks, type 7 of Hyndman and Fan, "Sample
// Quantiles in Statistical Packages", The American Statistician 50 (1996): with the values sorted
// as x[0..n-1], h = (n - 1) * percent / 100 and the result x[floor h] + (h - floor h) * (x[floor h
// + 1]
// - x[floor h]). NumPy's and R's default.
//
// Std only. Thread rule: pure functions, any thread. Values have any unit and must be finite.
#ifndef ASSAY_COMMON_MEASURE_PERCENTILE_H_
#define ASSAY_COMMON_MEASURE_PERCENTILE_H_

#include <optional>
#include <span>
#include <vector>

namespace assay::measure {

// percent is cut to [0, 100]. nullopt without values.
std::optional<double> Percentile(std::span<const double> values, double percent);

std::optional<double> Median(std::span<const double> values);

// Median absolute deviation times 1.4826, which estimates the standard deviation of a normal
// distribution and does not move for fewer than half of the values being outliers (Rousseeuw and
// Croux, "Alternatives to the Median Absolute Deviation", JASA 88 (1993)). nullopt without values.
std::optional<double> ScaledMad(std::span<const double> values);

// How far each value is from the median, in ScaledMad; Iglewicz and Hoaglin ("How to Detect and
// Handle Outliers" (1993)) call beyond 3.5 an outlier. Where more than half of the values are equal
// the scale is 0, and all are 0: there is nothing to measure a deviation by.
std::vector<double> RobustDeviations(std::span<const double> values);

}  // namespace assay::measure

#endif  // ASSAY_COMMON_MEASURE_PERCENTILE_H_
