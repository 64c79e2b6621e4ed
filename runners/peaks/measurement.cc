#include "runners/peaks/measurement.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "common/measure/moments.h"
#include "common/measure/percentile.h"
#include "common/measure/steady_test.h"
#include "common/measure/stopping_rule.h"

namespace assay::peaks {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Queues steps until `taken` says, given the length of each, that it is enough; then drains the
// queue. Returns how many steps ran.
int64_t RunSteps(Timeline& timeline, const std::function<void()>& queue_step,
                 const std::function<bool(double)>& taken) {
  timeline.BeginWindow();
  int64_t steps = 0;
  bool enough = false;
  while (!enough) {
    queue_step();
    timeline.EndStep();
    ++steps;
    if (timeline.PendingSteps() >= Timeline::kMostPending) enough = taken(timeline.TakeOldest());
  }
  while (timeline.PendingSteps() > 0) taken(timeline.TakeOldest());
  return steps;
}

measure::SteadyOptions SteadyOptionsFor(const StopRule& stop) {
  measure::SteadyOptions options;
  // A cell that asks for a short window is no place for a long warm-up.
  options.min_seconds = std::min(options.min_seconds, stop.min_seconds);
  options.max_seconds = std::clamp(stop.max_seconds, options.min_seconds, options.max_seconds);
  options.window_seconds = std::min(options.window_seconds, options.min_seconds / 4);
  return options;
}

}  // namespace

nlohmann::json Measure(Timeline& timeline, const std::function<void()>& queue_step,
                       double units_per_step, const StopRule& stop, RecordWriter& records) {
  nlohmann::json fields;
  records.Phase("warmup");
  Clock::time_point start = Clock::now();
  measure::SteadyTest steady(SteadyOptionsFor(stop));
  fields["warmup_steps"] = RunSteps(timeline, queue_step, [&](double seconds) {
    steady.Add(seconds);
    records.Progress(static_cast<uint64_t>(steady.steps()), units_per_step / seconds, 0);
    return steady.Done();
  });
  timeline.Synchronize();
  fields["warmup_seconds"] = SecondsSince(start);

  records.Phase("measure");
  measure::StoppingRule rule({.confidence = stop.confidence,
                              .min_seconds = stop.min_seconds,
                              .max_seconds = stop.max_seconds});
  timeline.Synchronize();
  start = Clock::now();
  const int64_t steps = RunSteps(timeline, queue_step, [&](double seconds) {
    const bool enough = rule.Add(seconds).has_value();
    records.Progress(static_cast<uint64_t>(rule.steps()),
                     units_per_step * static_cast<double>(rule.steps()) / rule.seconds(),
                     rule.SecondsLeft());
    return enough;
  });
  timeline.Synchronize();
  fields["host_seconds"] = SecondsSince(start);
  const double seconds = timeline.WindowSeconds();
  const double units = units_per_step * static_cast<double>(steps);

  records.Phase("finish");
  fields["seconds"] = seconds;
  fields["steps"] = steps;
  fields["device_steps"] = timeline.CountedSteps();
  fields["samples"] = static_cast<int64_t>(std::llround(units));
  fields["throughput"] = units / seconds;
  const auto milliseconds = [&](double percent) {
    return measure::Percentile(rule.step_seconds(), percent).value_or(0) * 1e3;
  };
  fields["step_p50_ms"] = milliseconds(50);
  fields["step_p95_ms"] = milliseconds(95);
  fields["step_p99_ms"] = milliseconds(99);
  if (const auto cv = measure::Moments(rule.step_seconds()).CoefficientOfVariation()) {
    fields["cv_ratio"] = *cv;
  }
  if (const auto interval = rule.CurrentInterval()) {
    fields["ci95_ratio"] = interval->half_width_ratio;
  }
  fields["stop_reason"] = measure::StopReasonName(*rule.reason());
  return fields;
}

}  // namespace assay::peaks
