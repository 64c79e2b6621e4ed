#include "agent/telemetry/window_statistics.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr BootTime kStart{seconds(1000)};

NvmlSample Busy(double energy_joules) {
  NvmlSample sample;
  sample.power_watts = 300;
  sample.sm_clock_hertz = 1.4e9;
  sample.temperature_celsius = 60;
  sample.memory_used_bytes = 8000;
  sample.throttle_reasons = 0;
  sample.energy_joules = energy_joules;
  return sample;
}

// 10 Hz for `length`, at `watts` by the counter, in a window of that length.
WindowStatistics Fed(seconds length, NvmlSample sample, double watts, bool counter = true) {
  WindowStatistics statistics(1);
  statistics.Begin(kStart);
  for (milliseconds at{0}; at <= length; at += milliseconds(100)) {
    if (counter) {
      sample.energy_joules = 5e6 + watts * static_cast<double>(at.count()) / 1e3;
    }
    statistics.Add(0, kStart + at, sample);
  }
  statistics.End(kStart + length);
  return statistics;
}

Record Filled(const WindowStatistics& statistics) {
  Record record;
  statistics.Fill(record);
  return record;
}

TEST(WindowStatistics, MeansAreOfTheWindowOnly) {
  WindowStatistics statistics(1);
  NvmlSample idle = Busy(0);
  idle.power_watts = 20;
  idle.temperature_celsius = 90;
  statistics.Add(0, kStart, idle);
  statistics.Begin(kStart + seconds(1));
  statistics.Add(0, kStart + seconds(2), Busy(0));
  statistics.End(kStart + seconds(3));
  statistics.Add(0, kStart + seconds(4), idle);
  const Record record = Filled(statistics);
  EXPECT_EQ(record.Number(Field::kPowerMeanWatts), 300);
  EXPECT_EQ(record.Number(Field::kSmClockMeanHertz), 1.4e9);
  EXPECT_EQ(record.Number(Field::kTemperatureMaxCelsius), 60);
}

TEST(WindowStatistics, MemoryPeakIsOfTheWholeSession) {
  WindowStatistics statistics(1);
  NvmlSample peak;
  peak.memory_used_bytes = 12345;
  statistics.Add(0, kStart, peak);
  statistics.Begin(kStart + seconds(1));
  statistics.Add(0, kStart + seconds(2), Busy(0));
  statistics.End(kStart + seconds(3));
  EXPECT_EQ(Filled(statistics).Integer(Field::kDeviceUsedBytes), 12345);
}

TEST(WindowStatistics, WithoutAWindowOnlyMemoryIsKnown) {
  WindowStatistics statistics(1);
  statistics.Add(0, kStart, Busy(0));
  const Record record = Filled(statistics);
  EXPECT_TRUE(record.Has(Field::kDeviceUsedBytes));
  EXPECT_FALSE(record.Has(Field::kPowerMeanWatts));
  EXPECT_FALSE(record.Has(Field::kThrottleRatio));
}

TEST(WindowStatistics, EnergyComesFromTheCounterFromThirtySecondsOn) {
  NvmlSample sample = Busy(0);
  const auto energy = Filled(Fed(seconds(31), sample, 250)).Number(Field::kEnergyJoules);
  ASSERT_TRUE(energy);
  EXPECT_NEAR(*energy, 31 * 250, 10);  // the counter's, not the 300 W of the sensor
}

TEST(WindowStatistics, NoEnergyFromAWindowThatIsTooShort) {
  EXPECT_FALSE(Filled(Fed(seconds(29), Busy(0), 250)).Has(Field::kEnergyJoules));
}

TEST(WindowStatistics, WithoutACounterEnergyComesFromPowerFromSixtySecondsOn) {
  NvmlSample sample = Busy(0);
  sample.energy_joules.reset();
  EXPECT_FALSE(Filled(Fed(seconds(59), sample, 0, false)).Has(Field::kEnergyJoules));
  const auto energy = Filled(Fed(seconds(60), sample, 0, false)).Number(Field::kEnergyJoules);
  ASSERT_TRUE(energy);
  EXPECT_NEAR(*energy, 60 * 300, 1);
}

TEST(WindowStatistics, ACounterThatRunsBackwardsGivesNoEnergy) {
  WindowStatistics statistics(1);
  statistics.Begin(kStart);
  statistics.Add(0, kStart, Busy(9000));
  statistics.Add(0, kStart + seconds(20), Busy(10));
  statistics.Add(0, kStart + seconds(40), Busy(9500));
  statistics.End(kStart + seconds(40));
  EXPECT_FALSE(Filled(statistics).Has(Field::kEnergyJoules));
}

// Case 37: no power sensor leaves power and energy out, the rest present.
TEST(WindowStatistics, MissingPowerLeavesTheOtherFiguresPresent) {
  NvmlSample sample = Busy(0);
  sample.power_watts.reset();
  const Record record = Filled(Fed(seconds(70), sample, 0, false));
  sample.energy_joules.reset();
  EXPECT_FALSE(record.Has(Field::kPowerMeanWatts));
  EXPECT_TRUE(record.Has(Field::kSmClockMeanHertz));
  EXPECT_TRUE(record.Has(Field::kTemperatureMaxCelsius));
  EXPECT_EQ(record.Number(Field::kThrottleRatio), 0);
}

TEST(WindowStatistics, ThrottleRatioCountsEveryReasonButIdle) {
  WindowStatistics statistics(1);
  statistics.Begin(kStart);
  for (const uint64_t reasons : {uint64_t{0}, kThrottleIdle, uint64_t{4}, kThrottleIdle | 0x20}) {
    NvmlSample sample;
    sample.throttle_reasons = reasons;
    statistics.Add(0, kStart, sample);
  }
  statistics.End(kStart + seconds(1));
  EXPECT_EQ(Filled(statistics).Number(Field::kThrottleRatio), 0.5);
}

TEST(WindowStatistics, ThrottleReasonsAreSharesOfTheirOwn) {
  WindowStatistics statistics(1);
  statistics.Begin(kStart);
  for (const uint64_t reasons :
       {uint64_t{0x8 | 0x40}, uint64_t{0x4}, uint64_t{0x100}, uint64_t{0}}) {
    NvmlSample sample;
    sample.throttle_reasons = reasons;
    statistics.Add(0, kStart, sample);
  }
  statistics.End(kStart + seconds(1));
  const Record record = Filled(statistics);
  EXPECT_EQ(record.Number(Field::kThrottleHwSlowdownRatio), 0.25);
  EXPECT_EQ(record.Number(Field::kThrottleHwThermalRatio), 0.25);
  EXPECT_EQ(record.Number(Field::kThrottlePowerCapRatio), 0.25);
  EXPECT_EQ(record.Number(Field::kThrottleClockSettingRatio), 0.25);
  EXPECT_EQ(record.Number(Field::kThrottleSwThermalRatio), 0);
  EXPECT_EQ(record.Number(Field::kThrottleRatio), 0.75);
}

TEST(WindowStatistics, ACardThatTellsNoReasonHasNoShares) {
  NvmlSample sample = Busy(0);
  sample.throttle_reasons.reset();
  const Record record = Filled(Fed(seconds(1), sample, 0));
  EXPECT_FALSE(record.Has(Field::kThrottleRatio));
  for (const auto& [field, bits] : kThrottleFields) EXPECT_FALSE(record.Has(field));
}

TEST(WindowStatistics, PowerIsSummedAndClocksAreAveragedOverDevices) {
  WindowStatistics statistics(2);
  statistics.Begin(kStart);
  NvmlSample other = Busy(0);
  other.sm_clock_hertz = 1.0e9;
  other.power_watts = 200;
  other.temperature_celsius = 71;
  statistics.Add(0, kStart, Busy(0));
  statistics.Add(1, kStart, other);
  statistics.End(kStart + seconds(1));
  const Record record = Filled(statistics);
  EXPECT_EQ(record.Number(Field::kPowerMeanWatts), 500);
  EXPECT_EQ(record.Number(Field::kSmClockMeanHertz), 1.2e9);
  EXPECT_EQ(record.Number(Field::kTemperatureMaxCelsius), 71);
}

TEST(WindowStatistics, ASumOverDevicesNeedsEveryDevice) {
  WindowStatistics statistics(2);
  statistics.Begin(kStart);
  statistics.Add(0, kStart, Busy(0));
  statistics.End(kStart + seconds(1));
  EXPECT_FALSE(Filled(statistics).Has(Field::kPowerMeanWatts));
}

}  // namespace
}  // namespace assay
