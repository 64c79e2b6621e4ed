#include "runners/train/measurement.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "common/measure/moments.h"
#include "common/measure/percentile.h"
#include "common/measure/steady_test.h"
#include "common/measure/stopping_rule.h"

namespace assay::train {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

measure::SteadyOptions SteadyOptionsFor(const StopRule& stop) {
  measure::SteadyOptions options;
  // A cell that asks for a short window is no place for a long warm-up.
  options.min_seconds = std::min(options.min_seconds, stop.min_seconds);
  options.max_seconds = std::clamp(stop.max_seconds, options.min_seconds, options.max_seconds);
  options.window_seconds = std::min(options.window_seconds, options.min_seconds / 4);
  return options;
}

// Runs steps until `taken` says, given the length of each finished step, that it is enough; then
// drains the queue. Returns how many steps ran.
int64_t RunSteps(Device& device, Lane& lane, StepOutput& last,
                 const std::function<bool(double)>& taken) {
  int64_t steps = 0;
  int64_t depth = device.QueueDepth(0);
  bool enough = false;
  const auto take = [&] {
    const double seconds = device.TakeOldest();
    depth = std::min(device.QueueDepth(seconds), Device::kMostPending);
    enough = taken(seconds) || enough;
  };
  while (!enough) {
    last = lane.Step();
    device.EndStep();
    ++steps;
    while (device.PendingSteps() > depth || device.OldestReached()) take();
  }
  while (device.PendingSteps() > 0) take();
  return steps;
}

void WarmUp(Device& device, Lane& lane, const StopRule& stop, double samples, RecordWriter& records,
            Measurement& out) {
  const Clock::time_point start = Clock::now();
  // The first steps search for algorithms, compile, record and fill caches (15 s seen): they are
  // run to their end before the steady test's own cap begins to count.
  for (int64_t i = 0; i < lane.PrimingSteps(); ++i) {
    device.BeginWindow();
    StepOutput output = lane.Step();
    device.EndStep();
    const double seconds = device.TakeOldest();
    if (i == 0) {
      out.first = output;
      // cuDNN's search took workspaces that no later step has; longer than a sample of the driver's
      // memory they need not have been there.
      device.ForgetPeaks();
    }
    records.Progress(++out.warmup_steps, samples / seconds, 0);
  }
  measure::SteadyTest steady(SteadyOptionsFor(stop));
  device.BeginWindow();
  StepOutput last;
  int64_t shown = out.warmup_steps;
  out.warmup_steps += RunSteps(device, lane, last, [&](double seconds) {
    steady.Add(seconds);
    records.Progress(++shown, samples / seconds, 0);
    return steady.Done();
  });
  device.Synchronize();
  out.warmup_steady = steady.state() == measure::Steadiness::kSteady;
  out.warmup_seconds = SecondsSince(start);
}

}  // namespace

Measurement Measure(Device& device, Lane& lane, const StopRule& stop, int64_t samples_per_step,
                    RecordWriter& records) {
  Measurement out;
  const double samples = static_cast<double>(samples_per_step);
  records.Phase("warmup");
  WarmUp(device, lane, stop, samples, records, out);

  records.Phase("measure");
  measure::StoppingRule rule({.confidence = stop.confidence,
                              .min_seconds = stop.min_seconds,
                              .max_seconds = stop.max_seconds});
  device.BeginWindow();
  const Clock::time_point start = Clock::now();
  out.steps = RunSteps(device, lane, out.last, [&](double seconds) {
    const bool enough = rule.Add(seconds).has_value();
    records.Progress(static_cast<uint64_t>(rule.steps()),
                     samples * static_cast<double>(rule.steps()) / rule.seconds(),
                     rule.SecondsLeft());
    return enough;
  });
  device.Synchronize();
  out.host_seconds = SecondsSince(start);
  out.seconds = device.WindowSeconds();

  records.Phase("finish");
  out.counts = device.Counts();
  out.p50_seconds = measure::Percentile(rule.step_seconds(), 50).value_or(0);
  out.p95_seconds = measure::Percentile(rule.step_seconds(), 95).value_or(0);
  out.p99_seconds = measure::Percentile(rule.step_seconds(), 99).value_or(0);
  out.cv_ratio = measure::Moments(rule.step_seconds()).CoefficientOfVariation();
  if (const auto interval = rule.CurrentInterval()) out.ci95_ratio = interval->half_width_ratio;
  out.stop_reason = measure::StopReasonName(*rule.reason());
  return out;
}

}  // namespace assay::train
