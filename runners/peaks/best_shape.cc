#include "runners/peaks/best_shape.h"

#include <algorithm>
#include <cmath>

namespace assay::peaks {
namespace {

constexpr double kTrySeconds = 0.15;

double SecondsOf(Timeline& timeline, const Candidate& candidate, int64_t repetitions) {
  timeline.BeginWindow();
  for (int64_t i = 0; i < repetitions; ++i) candidate.queue();
  timeline.EndStep();
  return timeline.TakeOldest() / static_cast<double>(repetitions);
}

}  // namespace

BestShape ChooseShape(Timeline& timeline, const std::vector<Candidate>& candidates,
                      const std::function<void(double)>& tried) {
  BestShape best;
  double best_rate = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    // The first one loads kernels and is no time.
    SecondsOf(timeline, candidate, 1);
    double seconds = SecondsOf(timeline, candidate, 1);
    const bool long_one = seconds > kMostRepetitionSeconds;
    if (!long_one) {
      const double fitting = std::ceil(kTrySeconds / std::max(seconds, 1e-6));
      seconds = SecondsOf(timeline, candidate, static_cast<int64_t>(fitting));
    }
    const double rate = candidate.units / std::max(seconds, 1e-9);
    tried(rate);
    if (best_rate > 0 && (long_one || rate <= best_rate)) continue;
    best_rate = rate;
    best.candidate = i;
    best.repetitions = std::max<int64_t>(
        1, static_cast<int64_t>(std::ceil(kStepSeconds / std::max(seconds, 1e-6))));
  }
  return best;
}

}  // namespace assay::peaks
