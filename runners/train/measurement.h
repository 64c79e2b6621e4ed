// Measurement: warm-up until steady, then one window by the device's own clock, until the stopping
// rule has enough (docs/method.md).
//
// The window starts from a synchronised device and ends behind its last step; throughput is its
// samples over its length, never a mean of rates. The host runs ahead by at most a quarter of a
// second of steps, so that it stops soon and never times its own queueing.
//
// Pure but for the device and the steps that it is given. Thread rule: one thread.
#ifndef ASSAY_RUNNERS_TRAIN_MEASUREMENT_H_
#define ASSAY_RUNNERS_TRAIN_MEASUREMENT_H_

#include <optional>
#include <string>
#include <vector>

#include "common/matrix/spec.h"
#include "runners/common/record_writer.h"
#include "runners/train/device/device.h"
#include "runners/train/lanes/lane.h"

namespace assay::train {

struct Measurement {
  double warmup_seconds = 0;  // by the host's clock, from the first step to the start of the window
  int64_t warmup_steps = 0;
  bool warmup_steady = false;
  int64_t steps = 0;
  StepCounts counts;        // of the window, by the device
  double seconds = 0;       // of the window, by the device
  double host_seconds = 0;  // the same by the host's steady clock
  double p50_seconds = 0, p95_seconds = 0, p99_seconds = 0;
  std::optional<double> cv_ratio;
  std::optional<double> ci95_ratio;
  std::string stop_reason;
  StepOutput first, last;  // of the warm-up's first and of the window's last step
};

// `samples_per_step` is for the progress line only.
Measurement Measure(Device& device, Lane& lane, const StopRule& stop, int64_t samples_per_step,
                    RecordWriter& records);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MEASUREMENT_H_
