#include "common/measure/student_t.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace assay::measure {
namespace {

// NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, upper critical values for 0.975.
TEST(StudentTQuantile, AgreesWithThePrintedTable) {
  const std::vector<std::pair<double, double>> table = {
      {1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},
      {6, 2.447},  {9, 2.262},  {10, 2.228}, {19, 2.093}, {20, 2.086},
      {29, 2.045}, {30, 2.042}, {60, 2.000}, {99, 1.984}, {100, 1.984}};
  for (const auto& [freedom, quantile] : table) {
    EXPECT_NEAR(StudentTQuantile(0.975, freedom), quantile, 0.0005) << freedom;
  }
}

// With one and two degrees of freedom the quantile is known in closed form.
TEST(StudentTQuantile, AgreesWithTheClosedForms) {
  for (const double p : {0.6, 0.9, 0.975, 0.9999}) {
    const double one = std::tan(M_PI * (p - 0.5));
    EXPECT_NEAR(StudentTQuantile(p, 1) / one, 1, 1e-9) << p;
    const double two = (2 * p - 1) / std::sqrt(2 * p * (1 - p));
    EXPECT_NEAR(StudentTQuantile(p, 2) / two, 1, 1e-9) << p;
  }
}

TEST(StudentTQuantile, BecomesTheNormalQuantile) {
  EXPECT_NEAR(StudentTQuantile(0.975, 1e7), 1.959964, 1e-6);
}

TEST(StudentTQuantile, TakesFractionsOfADegree) {
  const double between = StudentTQuantile(0.975, 2.5);
  EXPECT_LT(between, StudentTQuantile(0.975, 2));
  EXPECT_GT(between, StudentTQuantile(0.975, 3));
}

TEST(StudentTQuantile, IsSymmetric) {
  EXPECT_DOUBLE_EQ(StudentTQuantile(0.5, 7), 0);
  EXPECT_NEAR(StudentTQuantile(0.025, 7), -StudentTQuantile(0.975, 7), 1e-9);
}

TEST(StudentTQuantile, OutsideItsRangeIsNotANumber) {
  EXPECT_TRUE(std::isnan(StudentTQuantile(0, 5)));
  EXPECT_TRUE(std::isnan(StudentTQuantile(1, 5)));
  EXPECT_TRUE(std::isnan(StudentTQuantile(0.9, 0)));
  EXPECT_TRUE(std::isnan(StudentTQuantile(NAN, 5)));
}

TEST(StudentTProbability, InvertsTheQuantile) {
  for (const double freedom : {1.0, 2.7, 10.0, 500.0}) {
    for (const double p : {0.01, 0.3, 0.7, 0.99}) {
      EXPECT_NEAR(StudentTProbability(StudentTQuantile(p, freedom), freedom), p, 1e-12);
    }
  }
}

TEST(StudentTProbability, OfInfinityIsCertain) {
  EXPECT_EQ(StudentTProbability(INFINITY, 3), 1);
  EXPECT_EQ(StudentTProbability(-INFINITY, 3), 0);
}

}  // namespace
}  // namespace assay::measure
