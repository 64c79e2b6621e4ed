// Student's t distribution: the quantile that turns a standard error into an interval.
//
// The distribution function is the regularised incomplete beta function (DLMF 8.17, continued
// fraction 8.17.22 by Lentz's method), the quantile its inverse by bisection; relative error below
// 1e-9 for 0.5 < p <= 0.9999 and any degrees of freedom from 1 up, not only whole ones (Welch).
//
// Std only. Thread rule: pure functions, any thread.
#ifndef ASSAY_COMMON_MEASURE_STUDENT_T_H_
#define ASSAY_COMMON_MEASURE_STUDENT_T_H_

namespace assay::measure {

// P(T <= t). NaN for degrees_of_freedom <= 0.
double StudentTProbability(double t, double degrees_of_freedom);

// t with P(T <= t) = p, for 0 < p < 1; NaN outside and for degrees_of_freedom <= 0. The two-sided
// 95 % interval uses p = 0.975.
double StudentTQuantile(double p, double degrees_of_freedom);

}  // namespace assay::measure

#endif  // ASSAY_COMMON_MEASURE_STUDENT_T_H_
