// FlatTest: when a card under load has come to its temperature.
//
// Over the last `window` of readings the least-squares slopes of temperature and of SM clock are
// both within their limits. NVML gives whole degrees, so that one step of a degree in the middle of
// the window has a slope of 1.5 degrees a window: a card that still moves does not pass between two
// steps. Behind the limit of a degree in 30 s a card whose time constant is a minute has two
// degrees left, which is some tenths of a percent of its clock.
//
// Pure: fed with times of one boot clock. Thread rule: one owner.
#ifndef ASSAY_AGENT_TELEMETRY_FLAT_TEST_H_
#define ASSAY_AGENT_TELEMETRY_FLAT_TEST_H_

#include <chrono>
#include <deque>
#include <optional>

#include "common/clock/clock.h"

namespace assay {

struct FlatOptions {
  std::chrono::seconds window{30};
  double most_celsius_per_second = 1.0 / 30;
  double most_clock_ratio_per_second = 0.01 / 30;  // of the mean clock
};

class FlatTest {
 public:
  explicit FlatTest(const FlatOptions& options = {}) : options_(options) {}

  // Forgets what was: the load has begun only now.
  void Restart() { readings_.clear(); }
  void Add(BootTime at, double celsius, double hertz);

  // False until a whole window was seen, with two readings a second at least.
  bool Flat() const;
  // Of what the window holds; nullopt for fewer than two readings.
  std::optional<double> celsius_per_second() const;
  std::optional<double> clock_ratio_per_second() const;

 private:
  struct Reading {
    BootTime at;
    double celsius, hertz;
  };
  template <class Value>
  std::optional<double> SlopeOf(Value value) const;

  const FlatOptions options_;
  std::deque<Reading> readings_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_TELEMETRY_FLAT_TEST_H_
