// SteadyTest: when warm-up is over.
//
// Steps are collected into windows of at least `window_seconds` and one step each. Warm-up is over
// when `min_seconds` and `min_steps` have passed and the medians of the last `windows` windows
// differ by at most `agreement_ratio` of their median, that is, a drift of at most agreement_ratio
// /
// ((windows - 1) * window_seconds) a second. Medians, because one outlier (cuDNN's search, a page
// fault) must not keep a steady run waiting. By time as well as by steps: first steps are 2 to 8
// times slower, and a card slows down over its first seconds. At `max_seconds` the test gives up
// and says so.
//
// Std only; holds no clock: the time is the sum of the steps. Thread rule: one owner.
#ifndef ASSAY_COMMON_MEASURE_STEADY_TEST_H_
#define ASSAY_COMMON_MEASURE_STEADY_TEST_H_

#include <cstdint>
#include <deque>
#include <vector>

namespace assay::measure {

struct SteadyOptions {
  double min_seconds = 2;
  double max_seconds = 60;
  int64_t min_steps = 5;
  double window_seconds = 0.5;
  int windows = 3;
  double agreement_ratio = 0.02;
};

enum class Steadiness { kWarming, kSteady, kGaveUp };

class SteadyTest {
 public:
  explicit SteadyTest(const SteadyOptions& options);

  // A step's length; a value that is not finite or is negative counts as 0 seconds. Returns
  // state().
  Steadiness Add(double step_seconds);

  // Stays as it is once it is no longer kWarming.
  Steadiness state() const { return state_; }
  bool Done() const { return state_ != Steadiness::kWarming; }
  double seconds() const { return seconds_; }
  int64_t steps() const { return steps_; }

 private:
  bool MediansAgree() const;

  SteadyOptions options_;
  Steadiness state_ = Steadiness::kWarming;
  double seconds_ = 0;
  int64_t steps_ = 0;
  std::vector<double> window_;  // steps of the window that is filling
  double window_filled_seconds_ = 0;
  std::deque<double> medians_;  // of the last `windows` full windows
};

}  // namespace assay::measure

#endif  // ASSAY_COMMON_MEASURE_STEADY_TEST_H_
