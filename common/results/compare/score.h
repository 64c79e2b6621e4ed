// ScoreGroup: the figures of one group of workloads, by the score that was asked for.
//
// Internal to this folder. Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_COMPARE_SCORE_H_
#define ASSAY_COMMON_RESULTS_COMPARE_SCORE_H_

#include <cstdint>

#include "common/results/compare/compare.h"
#include "common/results/compare/grouped.h"

namespace assay::compare {

// Adds a group, what it leaves out and its bridges to `comparison`; none where the baseline has no
// figure in it, which is a reason to leave the others out.
void ScoreGroup(const Cells& cells, const Grouped& grouped, const GroupCells& group,
                const Options& options, uint32_t baseline, Comparison& comparison);

}  // namespace assay::compare

#endif  // ASSAY_COMMON_RESULTS_COMPARE_SCORE_H_
