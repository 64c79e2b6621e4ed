// Figures that no measurement can have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/results/rules.h"
#include "tests/unit/results/sound_record.h"

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RulesBounds, AShareOutsideZeroToOneIsInvalid) {
  for (const Field share : {Field::kGpuBusyRatio, Field::kThrottleRatio,
                            Field::kThrottlePowerCapRatio, Field::kColocateOverlapRatio}) {
    EXPECT_THAT(FaultsOf({{share, 1.0}}), IsEmpty());
    EXPECT_THAT(FaultsOf({{share, 1.01}}),
                ElementsAre(HasSubstr("is 1.01, and a share is at most 1")));
    EXPECT_THAT(FaultsOf({{share, -0.01}}), ElementsAre(HasSubstr("is -0.01, below zero")));
  }
  EXPECT_THAT(FaultsOf({{Field::kGpuBusyRatio, 7.0}}),
              ElementsAre("gpu_busy_ratio is 7, and a share is at most 1"));
}

TEST(RulesBounds, RatiosThatAreNoSharesMayPassOne) {
  EXPECT_THAT(FaultsOf({{Field::kCi95Ratio, 1.5},
                        {Field::kCvRatio, 2.0},
                        {Field::kDriftRatio, 1.2},
                        {Field::kMfuRatio, 1.1},
                        {Field::kBandwidthRatio, 3.0}}),
              IsEmpty());
}

// Of every field that is a count, a time, an amount or a rate, whoever adds it.
TEST(RulesBounds, WhatHasNoSignIsInvalidBelowZero) {
  size_t bounded = 0;
  for (const FieldInfo& info : AllFields()) {
    const bool amount = info.name.ends_with("_bytes") || info.name.ends_with("_seconds") ||
                        info.name.ends_with("_ms") || info.name.ends_with("_watts") ||
                        info.name.ends_with("_joules") || info.name.ends_with("_hertz") ||
                        info.name.ends_with("_steps");
    // That one is held against the window, which has a sentence of its own.
    if (!amount || info.field == Field::kHostSeconds) continue;
    ++bounded;
    const Value below = info.type == FieldType::kInteger ? Value(int64_t{-5}) : Value(-5.0);
    EXPECT_THAT(FaultsOf({{info.field, below}}),
                Contains(std::string(info.name) + " is -5, below zero"));
  }
  EXPECT_GT(bounded, 30u);
}

TEST(RulesBounds, ChangesSlopesLossesAndDegreesHaveASign) {
  EXPECT_THAT(FaultsOf({{Field::kDriftRatio, -0.5},
                        {Field::kLossLast, -3.0},
                        {Field::kTemperatureBeginCelsius, -4.0},
                        {Field::kSettleCelsiusPerSecond, -0.1},
                        {Field::kSettleClockRatioPerSecond, -0.1},
                        {Field::kSeed, int64_t{-7}}}),
              IsEmpty());
}

TEST(RulesBounds, MemoryThatTheDeviceOrTheAllocatorDoesNotHaveIsInvalid) {
  const auto with = [](Field field, int64_t gib) {
    return FaultsOf({{Field::kAllocatedPeakBytes, int64_t{4} << 30},
                     {Field::kReservedPeakBytes, int64_t{5} << 30},
                     {Field::kDeviceUsedBytes, int64_t{6} << 30},
                     {Field::kDeviceTotalBytes, int64_t{24} << 30},
                     {field, gib << 30}});
  };
  EXPECT_THAT(with(Field::kAllocatedPeakBytes, 5), IsEmpty());
  EXPECT_THAT(with(Field::kAllocatedPeakBytes, 6),
              ElementsAre("6.00 GiB allocated of 5.00 GiB reserved"));
  EXPECT_THAT(with(Field::kDeviceUsedBytes, 25), IsEmpty());
  EXPECT_THAT(with(Field::kDeviceUsedBytes, 26),
              ElementsAre("device_used_bytes is 26.0 GiB on a device of 24.0 GiB"));
  EXPECT_THAT(with(Field::kReservedPeakBytes, 26),
              ElementsAre(HasSubstr("reserved_peak_bytes is")));
}

TEST(RulesBounds, MoreReservedThanTheDeviceShowedIsSuspect) {
  const std::vector<Change> changes = {{Field::kReservedPeakBytes, int64_t{110} << 20},
                                       {Field::kDeviceUsedBytes, int64_t{100} << 20}};
  EXPECT_THAT(MarksOf(changes), ElementsAre("suspect"));
  EXPECT_THAT(Judge(Sound(changes)).notes,
              ElementsAre("110 MiB reserved, but the device showed 100 MiB in use"));
  EXPECT_THAT(MarksOf({{Field::kReservedPeakBytes, int64_t{104} << 20},
                       {Field::kDeviceUsedBytes, int64_t{100} << 20}}),
              IsEmpty());
}

}  // namespace
}  // namespace assay
