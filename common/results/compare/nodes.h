// CompareNodes: the nodes of one card against the median of their fleet, to name the odd one out.
//
// Internal to this folder. Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_COMPARE_NODES_H_
#define ASSAY_COMMON_RESULTS_COMPARE_NODES_H_

#include "common/results/compare/compare.h"
#include "common/results/compare/grouped.h"

namespace assay::compare {

// Adds a group for each card with two nodes that share a workload, a batch and a stack. A node's
// figure is the geometric mean over its workloads of its throughput over the median of all nodes
// that have it, and it is odd beyond kOddDeviation and kSameRatio.
void CompareNodes(const Cells& cells, const Grouped& grouped, Comparison& comparison);

}  // namespace assay::compare

#endif  // ASSAY_COMMON_RESULTS_COMPARE_NODES_H_
