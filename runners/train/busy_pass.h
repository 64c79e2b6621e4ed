// BusyPass: the share of a step in which the device had work, from a short traced pass of its own
// after the window (common/measure/busy_time.h).
//
// Thread rule: one thread.
#ifndef ASSAY_RUNNERS_TRAIN_BUSY_PASS_H_
#define ASSAY_RUNNERS_TRAIN_BUSY_PASS_H_

#include <cstdint>
#include <optional>

#include "runners/train/device/device.h"
#include "runners/train/lanes/lane.h"

namespace assay::train {

// Enough for a third of a second, within 3 and 20: a trace of thousands of steps helps nobody.
int64_t TracedSteps(double step_seconds);

// `step_seconds`: of the window, which nothing traced. nullopt where nothing can be traced or the
// tracing fails, which costs the figure and not the cell.
std::optional<double> MeasureBusyRatio(Device& device, Lane& lane, double step_seconds);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_BUSY_PASS_H_
