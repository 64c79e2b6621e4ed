#include "agent/telemetry/window_statistics.h"

#include <algorithm>

namespace assay {
namespace {

double SecondsOf(BootClock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void SetNumber(Record& record, Field field, const std::optional<double>& value) {
  if (value) record.Set(field, *value).IgnoreError();  // these are number fields
}

std::optional<double> MeanOf(double sum, int64_t count) {
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

// Of `figure` over all devices, or nothing where one device lacks it.
template <class Devices, class Figure>
std::optional<double> SumOf(const Devices& devices, Figure figure) {
  double sum = 0;
  for (const auto& device : devices) {
    const std::optional<double> value = figure(device);
    if (!value) return std::nullopt;
    sum += *value;
  }
  if (devices.empty()) return std::nullopt;
  return sum;
}

}  // namespace

void WindowStatistics::Begin(BootTime at) {
  if (!begin_) begin_ = at;
}

void WindowStatistics::End(BootTime at) {
  if (begin_ && !end_) end_ = std::max(at, *begin_);
}

void WindowStatistics::Add(size_t index, BootTime at, const NvmlSample& sample) {
  if (index >= devices_.size()) return;
  DeviceSums& device = devices_[index];
  if (sample.memory_used_bytes) {
    device.memory_known = true;
    device.memory_peak_bytes = std::max(device.memory_peak_bytes, *sample.memory_used_bytes);
  }
  if (!begin_ || at < *begin_ || (end_ && at > *end_)) return;
  if (sample.power_watts) {
    device.power_watts += *sample.power_watts;
    ++device.power_count;
  }
  if (sample.sm_clock_hertz) {
    device.clock_hertz += *sample.sm_clock_hertz;
    ++device.clock_count;
  }
  if (sample.memory_clock_hertz) {
    device.memory_clock_hertz += *sample.memory_clock_hertz;
    ++device.memory_clock_count;
  }
  if (sample.temperature_celsius) {
    device.temperature_celsius =
        std::max(device.temperature_celsius.value_or(-1e9), *sample.temperature_celsius);
    if (!device.temperature_first_celsius) {
      device.temperature_first_celsius = sample.temperature_celsius;
    }
    device.temperature_last_celsius = sample.temperature_celsius;
  }
  if (sample.throttle_reasons) {
    ++device.throttle_count;
    if ((*sample.throttle_reasons & ~kThrottleIdle) != 0) ++device.throttled;
    for (size_t i = 0; i < kThrottleFields.size(); ++i) {
      if ((*sample.throttle_reasons & kThrottleFields[i].second) != 0) ++device.throttled_by[i];
    }
  }
  if (sample.energy_joules) {
    if (!device.energy_first_joules) {
      device.energy_first_joules = sample.energy_joules;
      device.energy_first_at = at;
    } else if (*sample.energy_joules < *device.energy_last_joules) {
      device.energy_broken = true;
    }
    device.energy_last_joules = sample.energy_joules;
    device.energy_last_at = at;
  }
}

std::optional<double> WindowStatistics::EnergyOf(const DeviceSums& device,
                                                 double window_seconds) const {
  if (device.energy_first_joules && !device.energy_broken &&
      window_seconds >= SecondsOf(kEnergyByCounterWindow)) {
    // The readings lie up to a period inside the window; the rest is at the same mean power.
    const double span = SecondsOf(device.energy_last_at - device.energy_first_at);
    if (span >= 0.95 * window_seconds) {
      return (*device.energy_last_joules - *device.energy_first_joules) * window_seconds / span;
    }
  }
  // Two readings a second over the window is the least that a mean is built on.
  if (window_seconds >= SecondsOf(kEnergyByPowerWindow) &&
      static_cast<double>(device.power_count) >= 2 * window_seconds) {
    return device.power_watts / static_cast<double>(device.power_count) * window_seconds;
  }
  return std::nullopt;
}

void WindowStatistics::Fill(Record& record) const {
  uint64_t memory_peak = 0;
  bool memory_known = !devices_.empty();
  for (const DeviceSums& device : devices_) {
    memory_known = memory_known && device.memory_known;
    memory_peak = std::max(memory_peak, device.memory_peak_bytes);
  }
  if (memory_known) {
    record.Set(Field::kDeviceUsedBytes, static_cast<int64_t>(memory_peak)).IgnoreError();
  }
  if (!begin_ || !end_) return;
  const double window_seconds = SecondsOf(*end_ - *begin_);
  SetNumber(record, Field::kWindowSeconds, window_seconds);
  SetNumber(record, Field::kPowerMeanWatts, SumOf(devices_, [](const DeviceSums& d) {
              return MeanOf(d.power_watts, d.power_count);
            }));
  SetNumber(record, Field::kEnergyJoules,
            SumOf(devices_, [&](const DeviceSums& d) { return EnergyOf(d, window_seconds); }));
  const auto mean_clock = [&](Field field, auto sum, auto count) {
    const auto clocks =
        SumOf(devices_, [&](const DeviceSums& d) { return MeanOf(d.*sum, d.*count); });
    if (clocks) SetNumber(record, field, *clocks / static_cast<double>(devices_.size()));
  };
  mean_clock(Field::kSmClockMeanHertz, &DeviceSums::clock_hertz, &DeviceSums::clock_count);
  mean_clock(Field::kMemoryClockMeanHertz, &DeviceSums::memory_clock_hertz,
             &DeviceSums::memory_clock_count);
  const auto hottest = [&](Field field, auto member) {
    std::optional<double> celsius;
    for (const DeviceSums& device : devices_) {
      if (device.*member) celsius = std::max(celsius.value_or(-1e9), *(device.*member));
    }
    SetNumber(record, field, celsius);
  };
  hottest(Field::kTemperatureMaxCelsius, &DeviceSums::temperature_celsius);
  hottest(Field::kTemperatureBeginCelsius, &DeviceSums::temperature_first_celsius);
  hottest(Field::kTemperatureEndCelsius, &DeviceSums::temperature_last_celsius);
  FillThrottling(record);
}

void WindowStatistics::FillThrottling(Record& record) const {
  int64_t samples = 0, throttled = 0;
  std::array<int64_t, kThrottleFields.size()> by_reason{};
  for (const DeviceSums& device : devices_) {
    samples += device.throttle_count;
    throttled += device.throttled;
    for (size_t i = 0; i < by_reason.size(); ++i) by_reason[i] += device.throttled_by[i];
  }
  if (samples == 0) return;
  const auto share = [&](int64_t count) {
    return static_cast<double>(count) / static_cast<double>(samples);
  };
  SetNumber(record, Field::kThrottleRatio, share(throttled));
  for (size_t i = 0; i < by_reason.size(); ++i) {
    SetNumber(record, kThrottleFields[i].first, share(by_reason[i]));
  }
}

}  // namespace assay
