#include "common/measure/steady_test.h"

#include <algorithm>
#include <cmath>

#include "common/measure/percentile.h"

namespace assay::measure {

SteadyTest::SteadyTest(const SteadyOptions& options) : options_(options) {
  options_.windows = std::max(options_.windows, 2);
}

Steadiness SteadyTest::Add(double step_seconds) {
  if (Done()) return state_;
  const double step = std::isfinite(step_seconds) && step_seconds > 0 ? step_seconds : 0;
  seconds_ += step;
  ++steps_;
  window_.push_back(step);
  window_filled_seconds_ += step;
  if (window_filled_seconds_ >= options_.window_seconds) {
    medians_.push_back(*Median(window_));
    if (medians_.size() > static_cast<size_t>(options_.windows)) medians_.pop_front();
    window_.clear();
    window_filled_seconds_ = 0;
  }
  if (seconds_ >= options_.min_seconds && steps_ >= options_.min_steps && MediansAgree()) {
    state_ = Steadiness::kSteady;
  } else if (seconds_ >= options_.max_seconds) {
    state_ = Steadiness::kGaveUp;
  }
  return state_;
}

bool SteadyTest::MediansAgree() const {
  if (medians_.size() < static_cast<size_t>(options_.windows)) return false;
  const std::vector<double> medians(medians_.begin(), medians_.end());
  const auto [low, high] = std::minmax_element(medians.begin(), medians.end());
  return *high - *low <= options_.agreement_ratio * *Median(medians);
}

}  // namespace assay::measure
