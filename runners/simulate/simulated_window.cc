#include "runners/simulate/simulated_window.h"

#include <algorithm>
#include <optional>

#include "common/measure/moments.h"
#include "common/measure/percentile.h"
#include "common/measure/steady_test.h"
#include "common/measure/stopping_rule.h"

namespace assay::simulate {
namespace {

measure::SteadyOptions SteadyOptionsFor(const StopRule& stop) {
  measure::SteadyOptions options;
  options.min_seconds = std::min(options.min_seconds, stop.min_seconds);
  options.max_seconds = std::clamp(stop.max_seconds, options.min_seconds, options.max_seconds);
  options.window_seconds = std::min(options.window_seconds, options.min_seconds / 4);
  return options;
}

nlohmann::json Milliseconds(const std::optional<double>& seconds) {
  return seconds ? nlohmann::json(*seconds * 1e3) : nlohmann::json(nullptr);
}

void FillFields(const measure::StoppingRule& rule, int64_t global_samples, WindowResult& result) {
  const auto steps = rule.step_seconds();
  const auto interval = rule.CurrentInterval();
  const auto cv = measure::Moments(steps).CoefficientOfVariation();
  const double samples = static_cast<double>(result.steps) * static_cast<double>(global_samples);
  result.fields = {
      {"warmup_steps", result.warmup_steps},
      {"warmup_seconds", result.warmup_seconds},
      {"steps", result.steps},
      {"device_steps", result.steps},
      {"seconds", result.seconds},
      {"host_seconds", result.seconds * 1.0005},
      {"samples", result.steps * global_samples},
      {"throughput", samples / result.seconds},
      {"ci95_ratio", interval ? nlohmann::json(interval->half_width_ratio) : nlohmann::json()},
      {"step_p50_ms", Milliseconds(measure::Percentile(steps, 50))},
      {"step_p95_ms", Milliseconds(measure::Percentile(steps, 95))},
      {"step_p99_ms", Milliseconds(measure::Percentile(steps, 99))},
      {"cv_ratio", cv ? nlohmann::json(*cv) : nlohmann::json()},
      {"stop_reason", measure::StopReasonName(*rule.reason())}};
}

}  // namespace

WindowResult RunWindow(const StopRule& stop, int64_t global_samples, const NextStep& next,
                       const OnStep& on_step, const std::function<void(const char*)>& on_phase) {
  WindowResult result;
  on_phase("warmup");
  measure::SteadyTest steady(SteadyOptionsFor(stop));
  do {
    const double seconds = next();
    steady.Add(seconds);
    on_step(steady.steps(), seconds, 0);
  } while (!steady.Done());
  result.warmup_steps = steady.steps();
  result.warmup_seconds = steady.seconds();

  on_phase("measure");
  measure::StopOptions options;
  options.confidence = stop.confidence;
  options.min_seconds = stop.min_seconds;
  options.max_seconds = stop.max_seconds;
  // A bound on memory: steps of a simulated card may take microseconds.
  options.max_steps = 2'000'000;
  measure::StoppingRule rule(options);
  std::optional<measure::StopReason> reason;
  while (!reason) {
    const double seconds = next();
    reason = rule.Add(seconds);
    on_step(result.warmup_steps + rule.steps(), seconds, rule.SecondsLeft());
  }
  result.steps = rule.steps();
  result.seconds = rule.seconds();
  FillFields(rule, global_samples, result);
  return result;
}

}  // namespace assay::simulate
