#include "common/measure/student_t.h"

#include <cmath>
#include <limits>

namespace assay::measure {
namespace {

// Logarithm of the gamma function for x > 0 by Stirling's series (DLMF 5.11.1), shifted up to x >=
// 10 first. Not std::lgamma, which writes the global `signgam`.
double LogGamma(double x) {
  double shift = 0;
  while (x < 10) {
    shift += std::log(x);
    x += 1;
  }
  const double inverse = 1 / x;
  const double square = inverse * inverse;
  const double series =
      inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  return (x - 0.5) * std::log(x) - x + kHalfLogTwoPi + series - shift;
}

// DLMF 8.17.22 by Lentz's method. Converges fast for x < (a + 1) / (a + b + 2).
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kMostTerms = 10000;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return fraction;
}

// I_x(a, b), with 1 - x given apart so that nothing is lost near x = 1.
double RegularisedBeta(double a, double b, double x, double rest) {
  if (x <= 0) return 0;
  if (rest <= 0) return 1;
  const double front =
      std::exp(a * std::log(x) + b * std::log(rest) + LogGamma(a + b) - LogGamma(a) - LogGamma(b));
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(a, b, x) / a;
  return 1 - front * BetaFraction(b, a, rest) / b;
}

// P(T > t) for t >= 0: half of I_x(n / 2, 1 / 2) at x = n / (n + t^2).
double UpperTail(double t, double n) {
  const double square = t * t;
  return RegularisedBeta(n / 2, 0.5, n / (n + square), square / (n + square)) / 2;
}

}  // namespace

double StudentTProbability(double t, double degrees_of_freedom) {
  if (!(degrees_of_freedom > 0) || std::isnan(t)) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(t)) return t > 0 ? 1 : 0;
  const double tail = UpperTail(std::abs(t), degrees_of_freedom);
  return t >= 0 ? 1 - tail : tail;
}

double StudentTQuantile(double p, double degrees_of_freedom) {
  if (!(p > 0 && p < 1) || !(degrees_of_freedom > 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (p == 0.5) return 0;
  if (p < 0.5) return -StudentTQuantile(1 - p, degrees_of_freedom);
  const double tail = 1 - p;
  double high = 1;
  while (UpperTail(high, degrees_of_freedom) > tail && high < 1e150) high *= 2;
  double low = 0;
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (UpperTail(middle, degrees_of_freedom) > tail ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

}  // namespace assay::measure
