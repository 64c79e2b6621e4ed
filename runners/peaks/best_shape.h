// BestShape: which of several shapes a device does fastest. Some seconds of load come first, since
// the first shapes would else be tried on a card that is not at its power limit yet; then all are
// tried in turn, three times, and the median counts. What is reported is measured again afterwards,
// so that the luckiest try is not the figure.
//
// Pure but for the device's time line. Thread rule: one thread.
#ifndef ASSAY_RUNNERS_PEAKS_BEST_SHAPE_H_
#define ASSAY_RUNNERS_PEAKS_BEST_SHAPE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runners/peaks/candidate.h"
#include "runners/peaks/timeline.h"

namespace assay::peaks {

struct BestShape {
  size_t candidate = 0;
  int64_t repetitions = 1;  // a step, of about kStepSeconds
};

// Long enough that the count and the events between steps cost nothing, short enough for the
// batches of steps that an interval needs.
inline constexpr double kStepSeconds = 0.02;
// A shape of which one repetition takes longer gives too few steps for an interval: it is left out
// where there is another.
inline constexpr double kMostRepetitionSeconds = 0.05;

// `candidates` is not empty. `tried` is called after each with its rate in units a second.
BestShape ChooseShape(Timeline& timeline, const std::vector<Candidate>& candidates,
                      const std::function<void(double)>& tried);

}  // namespace assay::peaks

#endif  // ASSAY_RUNNERS_PEAKS_BEST_SHAPE_H_
