// SimulatedWindow: warm-up and measured window on simulated time, by the same steady test and
// stopping rule as a real runner's.
#ifndef ASSAY_RUNNERS_SIMULATE_SIMULATED_WINDOW_H_
#define ASSAY_RUNNERS_SIMULATE_SIMULATED_WINDOW_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "common/matrix/spec.h"

namespace assay::simulate {

// Length of the next step in seconds of simulated time.
using NextStep = std::function<double()>;
// Called after each step: how many so far, its length, at most so many seconds left (0 while not
// known).
using OnStep = std::function<void(int64_t, double, double)>;

struct WindowResult {
  int64_t warmup_steps = 0, steps = 0;
  double warmup_seconds = 0, seconds = 0;
  // warmup_seconds warmup_steps steps device_steps seconds host_seconds samples throughput
  // ci95_ratio step_p50_ms step_p95_ms step_p99_ms cv_ratio stop_reason
  nlohmann::json fields = nlohmann::json::object();
};

// `global_samples` a step. `on_phase` is called with warmup and measure.
WindowResult RunWindow(const StopRule& stop, int64_t global_samples, const NextStep& next,
                       const OnStep& on_step, const std::function<void(const char*)>& on_phase);

}  // namespace assay::simulate

#endif  // ASSAY_RUNNERS_SIMULATE_SIMULATED_WINDOW_H_
