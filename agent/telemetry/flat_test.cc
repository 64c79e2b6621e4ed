#include "agent/telemetry/flat_test.h"

#include <cmath>

namespace assay {

void FlatTest::Add(BootTime at, double celsius, double hertz) {
  readings_.push_back({at, celsius, hertz});
  // One more than the window: without it the rest never spans all of it.
  while (readings_.size() > 2 && readings_[1].at <= at - options_.window) readings_.pop_front();
}

bool FlatTest::Flat() const {
  if (readings_.size() < 2) return false;
  const auto span = readings_.back().at - readings_.front().at;
  const auto least = static_cast<size_t>(2 * options_.window.count());
  if (span < options_.window || readings_.size() < least) return false;
  const auto celsius = celsius_per_second();
  const auto clock = clock_ratio_per_second();
  return celsius && clock && std::abs(*celsius) <= options_.most_celsius_per_second &&
         std::abs(*clock) <= options_.most_clock_ratio_per_second;
}

std::optional<double> FlatTest::celsius_per_second() const {
  return SlopeOf([](const Reading& reading) { return reading.celsius; });
}

std::optional<double> FlatTest::clock_ratio_per_second() const {
  double sum = 0;
  for (const Reading& reading : readings_) sum += reading.hertz;
  if (!(sum > 0)) return std::nullopt;
  const double mean = sum / static_cast<double>(readings_.size());
  return SlopeOf([mean](const Reading& reading) { return reading.hertz / mean; });
}

// Least squares, about the means so that large values cost no digits.
template <class Value>
std::optional<double> FlatTest::SlopeOf(Value value) const {
  if (readings_.size() < 2) return std::nullopt;
  const double count = static_cast<double>(readings_.size());
  const auto seconds = [&](const Reading& reading) {
    return std::chrono::duration<double>(reading.at - readings_.front().at).count();
  };
  double mean_x = 0, mean_y = 0;
  for (const Reading& reading : readings_) {
    mean_x += seconds(reading) / count;
    mean_y += value(reading) / count;
  }
  double xy = 0, xx = 0;
  for (const Reading& reading : readings_) {
    xy += (seconds(reading) - mean_x) * (value(reading) - mean_y);
    xx += (seconds(reading) - mean_x) * (seconds(reading) - mean_x);
  }
  if (!(xx > 0)) return std::nullopt;
  return xy / xx;
}

}  // namespace assay
