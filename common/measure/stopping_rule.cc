#include "common/measure/stopping_rule.h"

#include <algorithm>
#include <cmath>

namespace assay::measure {
namespace {

// Without a minimum the first look would be at the first step and the doubling would start at 0.
constexpr double kLeastFirstLookSeconds = 0.1;

}  // namespace

std::string_view StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kConfidence:
      return "confidence";
    case StopReason::kMaxSeconds:
      return "max_seconds";
    case StopReason::kMaxSteps:
      return "max_steps";
  }
  return "max_seconds";
}

StoppingRule::StoppingRule(const StopOptions& options)
    : options_(options),
      next_look_seconds_(std::max(options.min_seconds, kLeastFirstLookSeconds)) {}

std::optional<StopReason> StoppingRule::Add(double step_seconds) {
  if (reason_) return reason_;
  const double step = std::isfinite(step_seconds) && step_seconds > 0 ? step_seconds : 0;
  step_seconds_.push_back(step);
  seconds_ += step;

  const bool at_cap = seconds_ >= options_.max_seconds;
  const bool all_steps = options_.max_steps > 0 && steps() >= options_.max_steps;
  const bool look = seconds_ >= next_look_seconds_;
  if (look) {
    while (next_look_seconds_ <= seconds_) next_look_seconds_ *= 2;
  }
  const bool may_converge = seconds_ >= options_.min_seconds && (look || at_cap || all_steps);
  if (may_converge && Converged()) {
    reason_ = StopReason::kConfidence;
  } else if (at_cap) {
    reason_ = StopReason::kMaxSeconds;
  } else if (all_steps) {
    reason_ = StopReason::kMaxSteps;
  }
  return reason_;
}

std::optional<BatchMeans> StoppingRule::CurrentInterval() const {
  return BatchMeansOf(step_seconds_, options_.least_batch_steps, options_.least_batches);
}

double StoppingRule::SecondsLeft() const { return std::max(options_.max_seconds - seconds_, 0.0); }

bool StoppingRule::Converged() const {
  if (!(options_.confidence > 0)) return false;
  const std::optional<BatchMeans> interval = CurrentInterval();
  return interval && interval->half_width_ratio <= options_.confidence;
}

}  // namespace assay::measure
