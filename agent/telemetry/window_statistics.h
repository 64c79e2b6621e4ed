// WindowStatistics: readings of an attempt's devices, folded into the fields of a record.
//
// Pure: fed with readings and times of one boot clock, so that a wall clock that steps changes
// nothing. Means of power, clock and throttling, the highest temperature and the energy are of the
// window; the peak of memory is of every reading. Thread rule: one owner.
#ifndef ASSAY_AGENT_TELEMETRY_WINDOW_STATISTICS_H_
#define ASSAY_AGENT_TELEMETRY_WINDOW_STATISTICS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "agent/telemetry/nvml.h"
#include "common/clock/clock.h"
#include "common/results/record.h"

namespace assay {

// Least windows for an energy figure. The counter moves in steps of some 100 ms and is good to a
// few tenths of a percent from 30 s on; sampled power lags and needs twice that.
inline constexpr std::chrono::seconds kEnergyByCounterWindow{30};
inline constexpr std::chrono::seconds kEnergyByPowerWindow{60};

// Shares of samples by reason: the field, and the bits that it counts.
inline constexpr std::array<std::pair<Field, uint64_t>, 7> kThrottleFields = {{
    {Field::kThrottlePowerCapRatio, kThrottlePowerCap},
    {Field::kThrottleSwThermalRatio, kThrottleSwThermal},
    {Field::kThrottleHwThermalRatio, kThrottleHwThermal},
    {Field::kThrottleHwSlowdownRatio, kThrottleHwSlowdown},
    {Field::kThrottlePowerBrakeRatio, kThrottlePowerBrake},
    {Field::kThrottleSyncBoostRatio, kThrottleSyncBoost},
    {Field::kThrottleClockSettingRatio, kThrottleClockSetting},
}};

class WindowStatistics {
 public:
  explicit WindowStatistics(size_t devices) : devices_(devices) {}

  // The first call of each counts. End without Begin is nothing.
  void Begin(BootTime at);
  void End(BootTime at);
  bool in_window() const { return begin_ && !end_; }

  void Add(size_t device, BootTime at, const NvmlSample& sample);

  // Sets the fields that are known: a sum over devices only where every device has a figure.
  void Fill(Record& record) const;

 private:
  struct DeviceSums {
    uint64_t memory_peak_bytes = 0;
    bool memory_known = false;
    double power_watts = 0, clock_hertz = 0, memory_clock_hertz = 0;
    int64_t power_count = 0, clock_count = 0, memory_clock_count = 0;
    std::optional<double> temperature_celsius, temperature_first_celsius, temperature_last_celsius;
    int64_t throttle_count = 0, throttled = 0;
    std::array<int64_t, kThrottleFields.size()> throttled_by{};
    std::optional<double> energy_first_joules, energy_last_joules;
    BootTime energy_first_at{}, energy_last_at{};
    bool energy_broken = false;  // the counter ran backwards: the driver was loaded again
  };
  std::optional<double> EnergyOf(const DeviceSums& device, double window_seconds) const;
  void FillThrottling(Record& record) const;

  std::vector<DeviceSums> devices_;
  std::optional<BootTime> begin_, end_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_TELEMETRY_WINDOW_STATISTICS_H_
