// Figure: one side's figure of one workload, out of its processes on one or several GPUs.
//
// Internal to this folder. Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_COMPARE_FIGURE_H_
#define ASSAY_COMMON_RESULTS_COMPARE_FIGURE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/measure/interval.h"
#include "common/results/compare/grouped.h"

namespace assay::compare {

// Processes that count for a figure. A choice that won by its first processes is valued by the
// others: the greatest of several noisy figures is too great on average.
enum class Use { kAll, kFirst, kAfterFirst };

// With kAfterFirst a GPU that has one process alone keeps it.
Gpus Take(const Gpus& gpus, Use use);

// Median over GPUs of each one's geometric mean.
double Middle(const Gpus& gpus);

struct Figure {
  double middle = 0;
  measure::LogEstimate estimate;  // of one GPU over its processes, of several over the GPUs
  int64_t processes = 0, gpus = 0;
  int64_t least_processes = 0;  // of any GPU
  std::optional<double> spread_ratio;
  std::optional<double> samples_per_joule;
};
Figure FigureOf(const Gpus& gpus);

struct Pair {
  measure::LogSides sides;
  bool indicative = false;
};

// `paired`: both sides are held on the GPUs that they have in common, each against itself, since
// not the GPU is what differs; where they have none in common it makes no difference.
Pair PairOf(const Gpus& values, const Gpus& base, bool paired);

// By the interval; kIndicative where there is none, or where too little stands behind it.
Standing StandingOf(const std::optional<measure::Ratio>& ratio, bool indicative);

}  // namespace assay::compare

#endif  // ASSAY_COMMON_RESULTS_COMPARE_FIGURE_H_
