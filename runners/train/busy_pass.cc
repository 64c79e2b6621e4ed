#include "runners/train/busy_pass.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include "common/measure/busy_time.h"
#include "runners/train/failure.h"

namespace assay::train {

int64_t TracedSteps(double step_seconds) {
  constexpr double kSeconds = 0.3;
  if (!(step_seconds > 0)) return 3;
  return static_cast<int64_t>(std::clamp(std::ceil(kSeconds / step_seconds), 3.0, 20.0));
}

std::optional<double> MeasureBusyRatio(Device& device, Lane& lane, double step_seconds) {
  const int64_t steps = TracedSteps(step_seconds);
  try {
    device.Synchronize();
    std::optional<std::vector<measure::Span>> spans = device.Trace([&] {
      for (int64_t i = 0; i < steps; ++i) lane.Step();
      device.Synchronize();
    });
    if (!spans) return std::nullopt;
    return measure::BusyRatio(std::move(*spans), steps, step_seconds);
  } catch (const std::exception&) {
    std::fprintf(stderr, "assay-train: the traced pass failed, gpu_busy_ratio is not known: %s\n",
                 TextOfException(std::current_exception()).c_str());
    return std::nullopt;
  }
}

}  // namespace assay::train
