// StoppingRule: when a measured window is long enough.
//
// The in-process 95 % interval by batch means of at least `least_batch_steps` steps is looked at
// when min_seconds have passed and then whenever the time has doubled, and once more at the cap:
// looking at every step would stop at the first lucky moment far too often (Armitage, McPherson and
// Rowe, "Repeated Significance Tests on Accumulating Data", JRSS A 132 (1969)); doubling keeps the
// looks to five between 5 s and 60 s. Where steps are so slow that there are never `least_batches`
// batches (a CPU), there is no interval and the window ends at max_seconds: `unconverged`, never
// converged by default.
//
// Std only; holds no clock: the time is the sum of the steps. Thread rule: one owner.
#ifndef ASSAY_COMMON_MEASURE_STOPPING_RULE_H_
#define ASSAY_COMMON_MEASURE_STOPPING_RULE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/measure/interval.h"

namespace assay::measure {

enum class StopReason { kConfidence, kMaxSeconds, kMaxSteps };

// "confidence", "max_seconds", "max_steps": the values of the field stop_reason.
std::string_view StopReasonName(StopReason reason);

struct StopOptions {
  double confidence = 0.01;  // half width over mean at which measuring stops; 0: never by it
  double min_seconds = 5;
  double max_seconds = 60;
  int64_t max_steps = 0;  // 0: no such cap
  int64_t least_batch_steps = 20;
  int64_t least_batches = 5;
};

class StoppingRule {
 public:
  explicit StoppingRule(const StopOptions& options);

  // A step's length in seconds; a value that is not finite or is negative counts as 0 seconds.
  // Returns why to stop after this step, or nullopt to go on; the reason stays once given. Keep the
  // step: it is part of the window.
  std::optional<StopReason> Add(double step_seconds);

  std::optional<StopReason> reason() const { return reason_; }
  double seconds() const { return seconds_; }
  int64_t steps() const { return static_cast<int64_t>(step_seconds_.size()); }
  std::span<const double> step_seconds() const { return step_seconds_; }

  // Of all steps so far; nullopt with too few batches. The field ci95_ratio is its
  // half_width_ratio.
  std::optional<BatchMeans> CurrentInterval() const;

  // At most so many seconds are left: to max_seconds. For the progress line.
  double SecondsLeft() const;

 private:
  bool Converged() const;

  StopOptions options_;
  std::vector<double> step_seconds_;
  double seconds_ = 0;
  double next_look_seconds_ = 0;
  std::optional<StopReason> reason_;
};

}  // namespace assay::measure

#endif  // ASSAY_COMMON_MEASURE_STOPPING_RULE_H_
