// A comparison as documents for programs. The bytes are the same in every locale.
//
// Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_COMPARE_COMPARE_JSON_H_
#define ASSAY_COMMON_RESULTS_COMPARE_COMPARE_JSON_H_

#include <string>

#include "common/results/compare/compare.h"

namespace assay::compare {

// One object, as docs/compare.md describes it; ends in a line feed. What is not known is null.
std::string WriteComparisonJson(const Comparison& comparison);

// One line for each side of a group, whose `workload` is empty and whose ratio is the geometric
// mean, and one for each of its workloads. RFC 4180, as results are.
std::string WriteComparisonCsv(const Comparison& comparison);

}  // namespace assay::compare

#endif  // ASSAY_COMMON_RESULTS_COMPARE_COMPARE_JSON_H_
