// Scaling: gangs whose throughput is more than their GPUs can have had together.
//
// The base of a gang is world size 1 of the same workload through the same code, the best over
// lanes: a gang that is compared with a slower lane, or with another program, scales better than
// linearly on paper (43 of 310 multi-GPU cells of public tables are more than 5 % above linear).
// Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_SCALING_H_
#define ASSAY_COMMON_RESULTS_SCALING_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay {

// The lower end of the interval of gang over base times world size; a value at it is still sound.
inline constexpr double kMostScalingRatio = 1.05;

struct ScalingRow {
  std::string alike;  // equal where only lane and world size may differ
  int64_t world_size = 1;
  std::span<const double> process_means;  // valid ones alone
};

// True for each row above the limit. Without an interval (fewer than two processes on a side), and
// without a base, there is no claim.
std::vector<bool> SuspectScaling(std::span<const ScalingRow> rows);

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_SCALING_H_
