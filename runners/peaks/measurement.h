// Measurement: warm-up until steady, then one window by the device's own clock until the stopping
// rule has enough (docs/method.md), of steps that are all alike.
//
// Pure but for the device and the steps that it is given. Thread rule: one thread.
#ifndef ASSAY_RUNNERS_PEAKS_MEASUREMENT_H_
#define ASSAY_RUNNERS_PEAKS_MEASUREMENT_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "common/matrix/spec.h"
#include "runners/common/record_writer.h"
#include "runners/peaks/timeline.h"

namespace assay::peaks {

// The fields of the window (catalog/fields.yaml): throughput in `units_per_step` a second, samples
// in whole units.
nlohmann::json Measure(Timeline& timeline, const std::function<void()>& queue_step,
                       double units_per_step, const StopRule& stop, RecordWriter& records);

}  // namespace assay::peaks

#endif  // ASSAY_RUNNERS_PEAKS_MEASUREMENT_H_
