// For each rule a record that just breaks it and one that just does not.
#include "common/results/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/results/sound_record.h"

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Rules, ASoundMeasurementIsValidWithoutMarks) {
  Record record = Sound();
  ApplyRules(record);
  EXPECT_EQ(record.Text(Field::kVerdict), "valid");
  EXPECT_TRUE(record.Has(Field::kMarks));
  EXPECT_THAT(record.List(Field::kMarks), IsEmpty());
}

TEST(Rules, NoMeasuredStepsIsInvalid) {
  EXPECT_THAT(FaultsOf({{Field::kSteps, int64_t{0}}, {Field::kDeviceSteps, int64_t{0}}}),
              ElementsAre("no measured steps"));
  EXPECT_THAT(FaultsOf({{Field::kSteps, Value()}}), ElementsAre("no measured steps"));
  EXPECT_THAT(FaultsOf({{Field::kSteps, int64_t{1}},
                        {Field::kDeviceSteps, int64_t{1}},
                        {Field::kSamples, int64_t{64}},
                        {Field::kThroughput, 0.64}}),
              IsEmpty());
}

// Cases 36 and 45: 0 and -1 are no throughput.
TEST(Rules, NoThroughputIsInvalid) {
  EXPECT_THAT(FaultsOf({{Field::kThroughput, 0.0}}), ElementsAre("no throughput above zero"));
  EXPECT_THAT(FaultsOf({{Field::kThroughput, -1.0}}), ElementsAre("no throughput above zero"));
  EXPECT_THAT(FaultsOf({{Field::kThroughput, Value()}}), ElementsAre("no throughput above zero"));
  EXPECT_THAT(FaultsOf({{Field::kThroughput, 0.001}, {Field::kSamples, Value()}}), IsEmpty());
}

// Case 27: a clock read before the device is done.
TEST(Rules, WindowsOverTwoPercentApartAreInvalid) {
  EXPECT_THAT(FaultsOf({{Field::kHostSeconds, 102.1}}), ElementsAre(HasSubstr("host's clock")));
  EXPECT_THAT(FaultsOf({{Field::kHostSeconds, 97.9}}), ElementsAre(HasSubstr("host's clock")));
  EXPECT_THAT(FaultsOf({{Field::kHostSeconds, 101.9}}), IsEmpty());
  EXPECT_THAT(FaultsOf({{Field::kHostSeconds, 98.1}}), IsEmpty());
}

TEST(Rules, AWindowOfNoLengthIsInvalidWhateverTheHostSays) {
  for (const double seconds : {0.0, -1.0}) {
    EXPECT_THAT(FaultsOf({{Field::kSeconds, seconds}}), ElementsAre(HasSubstr("above zero")));
    EXPECT_THAT(FaultsOf({{Field::kSeconds, seconds}, {Field::kHostSeconds, seconds}}),
                ElementsAre(HasSubstr("above zero")));
  }
}

TEST(Rules, AThroughputThatIsNotSamplesOverSecondsIsInvalid) {
  for (const double wrong : {6400.0, 633.5, 646.5, 1e308}) {
    EXPECT_THAT(FaultsOf({{Field::kThroughput, wrong}}),
                ElementsAre(HasSubstr("samples over seconds are 640")));
  }
  EXPECT_THAT(FaultsOf({{Field::kThroughput, 633.7}}), IsEmpty());
  EXPECT_THAT(FaultsOf({{Field::kThroughput, 6400.0}, {Field::kSeconds, Value()}}), IsEmpty());
}

TEST(Rules, SamplesThatTheStepsCannotHaveHadAreInvalid) {
  const std::vector<Change> four_ranks = {
      {Field::kGpus, int64_t{2}}, {Field::kNodes, int64_t{2}}, {Field::kWorldSize, int64_t{4}}};
  const auto with = [&](std::vector<Change> changes) {
    changes.insert(changes.end(), four_ranks.begin(), four_ranks.end());
    return changes;
  };
  EXPECT_THAT(FaultsOf({{Field::kSamples, int64_t{64'000'000}}, {Field::kThroughput, 640'000.0}}),
              ElementsAre("64000000 samples claimed in 1000 steps of 64"));
  EXPECT_THAT(FaultsOf({{Field::kBatch, std::string("max")}}), IsEmpty());
  EXPECT_THAT(FaultsOf({{Field::kBatch, std::string("max")}, {Field::kLargestBatch, int64_t{64}}}),
              IsEmpty());
  EXPECT_THAT(FaultsOf({{Field::kBatch, std::string("max")}, {Field::kLargestBatch, int64_t{72}}}),
              ElementsAre("64000 samples claimed in 1000 steps of 72"));
  EXPECT_THAT(FaultsOf(with({})), ElementsAre("64000 samples claimed in 1000 steps of 256"));
  EXPECT_THAT(FaultsOf(with({{Field::kSamples, int64_t{256000}}, {Field::kThroughput, 2560.0}})),
              IsEmpty());
  EXPECT_THAT(FaultsOf(with({{Field::kScaling, std::string("strong")}})), IsEmpty());
}

TEST(Rules, StepsOfAPeakAreAsLongAsTheRunnerMakesThem) {
  EXPECT_THAT(FaultsOf({{Field::kMode, std::string("peak")}, {Field::kBatch, std::string("1")}}),
              IsEmpty());
  EXPECT_THAT(FaultsOf({{Field::kMode, std::string("peak")}, {Field::kThroughput, 6400.0}}),
              ElementsAre(HasSubstr("samples over seconds are 640")));
}

TEST(Rules, StepsThatTheDeviceDidNotCountAreInvalid) {
  EXPECT_THAT(FaultsOf({{Field::kDeviceSteps, int64_t{999}}}),
              ElementsAre(HasSubstr("counted on the device")));
  EXPECT_THAT(FaultsOf({{Field::kDeviceSteps, Value()}}), IsEmpty());
}

TEST(Rules, AWrongWorldSizeIsInvalid) {
  EXPECT_THAT(FaultsOf({{Field::kGpus, int64_t{2}},
                        {Field::kNodes, int64_t{2}},
                        {Field::kBatch, Value()},
                        {Field::kWorldSize, int64_t{3}}}),
              ElementsAre("3 ranks took part, 4 asked for"));
  EXPECT_THAT(FaultsOf({{Field::kGpus, int64_t{2}},
                        {Field::kNodes, int64_t{2}},
                        {Field::kBatch, Value()},
                        {Field::kWorldSize, int64_t{4}}}),
              IsEmpty());
}

// Case 10: the same GPU twice.
TEST(Rules, TwoRanksOnOneGpuAreInvalid) {
  EXPECT_THAT(FaultsOf({{Field::kGpuUuids, std::string("GPU-1;GPU-2;GPU-1")}}),
              ElementsAre("two ranks on GPU GPU-1"));
  EXPECT_THAT(FaultsOf({{Field::kGpuUuids, std::string("GPU-1;GPU-2;GPU-3")}}), IsEmpty());
}

// Case 31: skipped steps.
TEST(Rules, OverOnePercentSkippedStepsAreInvalid) {
  EXPECT_THAT(FaultsOf({{Field::kSkippedSteps, int64_t{11}}}),
              ElementsAre(HasSubstr("skipped by loss scaling")));
  EXPECT_THAT(FaultsOf({{Field::kSkippedSteps, int64_t{10}}}), IsEmpty());
}

TEST(Rules, InvalidIsWrittenAsTheVerdict) {
  Record record = Sound({{Field::kDeviceSteps, int64_t{1}}});
  ApplyRules(record);
  EXPECT_EQ(record.Text(Field::kVerdict), "invalid");
}

TEST(Rules, ACellStoppedByACapIsUnconverged) {
  EXPECT_THAT(MarksOf({{Field::kStopReason, std::string("max_seconds")}}),
              ElementsAre("unconverged"));
  EXPECT_THAT(MarksOf({{Field::kStopReason, std::string("max_steps")}}),
              ElementsAre("unconverged"));
  EXPECT_THAT(MarksOf({{Field::kStopReason, Value()}}), IsEmpty());
}

TEST(Rules, ASentinelThatChangedByOverTwoPercentMarksWhatLiesBetween) {
  EXPECT_THAT(MarksOf({{Field::kDriftRatio, -0.021}}), ElementsAre("drift"));
  EXPECT_THAT(MarksOf({{Field::kDriftRatio, 0.021}}), ElementsAre("drift"));
  EXPECT_THAT(MarksOf({{Field::kDriftRatio, 0.0199}}), IsEmpty());
  EXPECT_THAT(MarksOf({{Field::kDriftRatio, -0.0199}}), IsEmpty());
  EXPECT_THAT(Judge(Sound({{Field::kDriftRatio, -0.05}})).notes,
              ElementsAre("the sentinel changed by -5.0 % across it"));
}

TEST(Rules, AGpuCellThatAskedToBeSettledAndWasNotSeenToBeIsUnsettled) {
  const Change asked{Field::kThermal, std::string("settled")};
  EXPECT_THAT(MarksOf({asked}), ElementsAre("unsettled"));
  EXPECT_THAT(MarksOf({asked, {Field::kSettled, false}}), ElementsAre("unsettled"));
  EXPECT_THAT(MarksOf({asked, {Field::kSettled, true}}), IsEmpty());
  EXPECT_THAT(MarksOf({{Field::kSettled, false}}), IsEmpty());  // asked for a cold one
  EXPECT_THAT(MarksOf({asked, {Field::kGpuUuids, std::string("CPU-1")}}), IsEmpty());
}

// Case 28: throttled, but present.
TEST(Rules, ThrottlingInOverFivePercentOfSamplesIsMarked) {
  EXPECT_THAT(MarksOf({{Field::kThrottleRatio, 0.051}}), ElementsAre("throttled"));
  EXPECT_THAT(MarksOf({{Field::kThrottleRatio, 0.05}}), IsEmpty());
  Record record = Sound({{Field::kThrottleRatio, 1.0}});
  ApplyRules(record);
  EXPECT_EQ(record.Text(Field::kVerdict), "valid");
}

TEST(Rules, OneReasonThatSlowsACardDownInOverFivePercentOfSamplesIsThrottled) {
  for (const Field field : {Field::kThrottlePowerCapRatio, Field::kThrottleSwThermalRatio,
                            Field::kThrottleHwThermalRatio, Field::kThrottleHwSlowdownRatio,
                            Field::kThrottlePowerBrakeRatio}) {
    EXPECT_THAT(MarksOf({{field, 0.051}}), ElementsAre("throttled")) << InfoOf(field).name;
    EXPECT_THAT(MarksOf({{field, 0.05}}), IsEmpty()) << InfoOf(field).name;
  }
  EXPECT_THAT(Judge(Sound({{Field::kThrottleSwThermalRatio, 0.3}})).notes,
              ElementsAre("throttled by heat in 30 % of samples"));
}

// A card at its application clocks shows that reason all the time, and is as it is sold.
TEST(Rules, AClockThatSomebodySetIsNoThrottling) {
  EXPECT_THAT(MarksOf({{Field::kThrottleRatio, 1.0},
                       {Field::kThrottlePowerCapRatio, 0.0},
                       {Field::kThrottleClockSettingRatio, 1.0}}),
              IsEmpty());
}

TEST(Rules, AControlGroupThatStoppedACellForOverOnePercentThrottledIt) {
  EXPECT_THAT(MarksOf({{Field::kCpuThrottledSeconds, 1.01}}), ElementsAre("throttled"));
  EXPECT_THAT(MarksOf({{Field::kCpuThrottledSeconds, 1.0}}), IsEmpty());
  EXPECT_THAT(
      MarksOf({{Field::kCpuThrottledSeconds, 1.01}, {Field::kGpuUuids, std::string("CPU-1")}}),
      ElementsAre("throttled"));
  EXPECT_THAT(MarksOf({{Field::kCpuThrottledSeconds, 50.0}, {Field::kSimulated, true}}),
              ElementsAre("simulated"));
}

TEST(Rules, AnApplicationClockBelowItsDefaultIsMarkedWithItsShare) {
  const auto clocks = [](double sm, double memory) {
    return std::vector<Change>{{Field::kSmClockApplicationHertz, sm},
                               {Field::kSmClockApplicationDefaultHertz, 1e9},
                               {Field::kMemoryClockApplicationHertz, memory},
                               {Field::kMemoryClockApplicationDefaultHertz, 5e9}};
  };
  EXPECT_THAT(MarksOf(clocks(0.99e9, 5e9)), ElementsAre("clock_limited"));
  EXPECT_THAT(MarksOf(clocks(1e9, 4e9)), ElementsAre("clock_limited"));
  EXPECT_THAT(MarksOf(clocks(0.996e9, 5e9)), IsEmpty());
  EXPECT_THAT(MarksOf(clocks(1.2e9, 5e9)), IsEmpty());
  EXPECT_THAT(Judge(Sound(clocks(1e9, 4e9))).notes,
              ElementsAre("application clocks at 80 % of the default"));
  EXPECT_THAT(MarksOf({{Field::kSmClockApplicationHertz, 0.5e9}}), IsEmpty());
}

TEST(Rules, AGpuWithoutWorkInATenthOfTheStepIsHostBound) {
  EXPECT_THAT(MarksOf({{Field::kGpuBusyRatio, 0.899}}), ElementsAre("host_bound"));
  EXPECT_THAT(MarksOf({{Field::kGpuBusyRatio, 0.9}}), IsEmpty());
  EXPECT_THAT(MarksOf({{Field::kGpuBusyRatio, 0.5}, {Field::kGpuUuids, std::string("CPU-1")}}),
              IsEmpty());
}

TEST(Rules, AnotherProcessOnTheGpuIsNamedAndMakesItShared) {
  EXPECT_THAT(MarksOf({{Field::kForeignProcesses, std::string("python3 (77)")},
                       {Field::kExclusive, std::string("unknown")}}),
              ElementsAre("shared"));
  EXPECT_THAT(
      Judge(Sound({{Field::kForeignProcesses, std::string("python3 (77);Xorg (9)")}})).notes,
      ElementsAre("others on its GPU: python3 (77), Xorg (9)"));
  EXPECT_THAT(MarksOf({{Field::kForeignProcesses, std::string()}}), IsEmpty());
}

TEST(Rules, AnXidMakesACellSuspect) {
  EXPECT_THAT(MarksOf({{Field::kXids, std::string("31")}}), ElementsAre("suspect"));
  EXPECT_THAT(MarksOf({{Field::kXids, std::string()}}), IsEmpty());
}

TEST(Rules, ColocatedWindowsThatWereNotAtOnceAreSuspect) {
  EXPECT_THAT(MarksOf({{Field::kColocateOverlapRatio, 0.89}}), ElementsAre("suspect"));
  EXPECT_THAT(MarksOf({{Field::kColocateOverlapRatio, 0.9}}), IsEmpty());
}

TEST(Rules, ALossOutOfItsBandIsSuspect) {
  const auto losses = [](double first, double last) {
    return std::vector<Change>{{Field::kLossFirst, first}, {Field::kLossLast, last}};
  };
  EXPECT_THAT(MarksOf(losses(7, 14.1)), ElementsAre("suspect"));
  EXPECT_THAT(MarksOf(losses(7, 13.9)), IsEmpty());
  EXPECT_THAT(MarksOf(losses(0.1, 1.9)), IsEmpty());  // of a model that had learnt
  EXPECT_THAT(MarksOf(losses(7, 0.01)), IsEmpty());   // learns its eight batches by heart
}

// Case 31 (NVIDIA/apex#43): the loss stays at 6.91.
TEST(Rules, ALossThatNeverChangesIsInvalid) {
  const auto losses = [](double first, double last, int64_t steps) {
    return std::vector<Change>{
        {Field::kLossFirst, first},    {Field::kLossLast, last},
        {Field::kSteps, steps},        {Field::kDeviceSteps, steps},
        {Field::kSamples, 64 * steps}, {Field::kThroughput, 0.64 * static_cast<double>(steps)}};
  };
  EXPECT_THAT(FaultsOf(losses(6.9078, 6.9078, 1000)), ElementsAre(HasSubstr("constant")));
  EXPECT_THAT(FaultsOf(losses(6.9078, 6.9077, 1000)), IsEmpty());
  EXPECT_THAT(FaultsOf(losses(6.9078, 6.9078, 9)), IsEmpty());
}

TEST(Rules, FewerInputBatchesThanClaimedAreInvalid) {
  const auto batches = [](int64_t claimed, int64_t seen) {
    return std::vector<Change>{{Field::kDataBatches, claimed}, {Field::kInputBatchesSeen, seen}};
  };
  EXPECT_THAT(FaultsOf(batches(8, 1)),
              ElementsAre("1 different input batches were seen, 8 claimed"));
  EXPECT_THAT(FaultsOf(batches(8, 8)), IsEmpty());
  EXPECT_THAT(FaultsOf(batches(1, 1)), IsEmpty());  // a batch that fills a quarter of the memory
  EXPECT_THAT(FaultsOf({{Field::kDataBatches, int64_t{8}}}), IsEmpty());
}

// A timer that is wrong by 10 % in both of the runner's clocks.
TEST(Rules, AWindowThatIsAnotherByTheAgentsClockIsInvalid) {
  EXPECT_THAT(FaultsOf({{Field::kWindowSeconds, 110.0}}), ElementsAre(HasSubstr("the agent's")));
  EXPECT_THAT(FaultsOf({{Field::kWindowSeconds, 102.8}}), ElementsAre(HasSubstr("the agent's")));
  EXPECT_THAT(FaultsOf({{Field::kWindowSeconds, 102.7}}), IsEmpty());  // 100.5 and 2 % and 0.2 s
  EXPECT_THAT(FaultsOf({{Field::kWindowSeconds, 98.2}}), ElementsAre(HasSubstr("the agent's")));
  EXPECT_THAT(FaultsOf({{Field::kWindowSeconds, 98.3}}), IsEmpty());
  EXPECT_THAT(FaultsOf({{Field::kWindowSeconds, 1.0}, {Field::kSimulated, true}}), IsEmpty());
}

// Case 27: a figure above what the card can do.
TEST(Rules, AboveTheMeasuredPeaksByFivePercentIsInvalid) {
  // 640 samples a second.
  const auto peaks = [](double flops, double bytes) {
    return std::vector<Change>{{Field::kPrecision, std::string("amp-fp16")},
                               {Field::kFlopsPerSample, 1e9},
                               {Field::kPeakFlopsPerSecond, flops * 1e9},
                               {Field::kLeastBytesPerStep, int64_t{6400000000}},
                               {Field::kPeakCopyBytesPerSecond, bytes * 1e8}};
  };
  EXPECT_THAT(FaultsOf(peaks(609, 9000)), ElementsAre(HasSubstr("measured peaks leave 609")));
  EXPECT_THAT(FaultsOf(peaks(9000, 609)), ElementsAre(HasSubstr("measured peaks leave 609")));
  EXPECT_THAT(FaultsOf(peaks(610, 9000)), IsEmpty());
  EXPECT_THAT(FaultsOf(peaks(9000, 610)), IsEmpty());
  EXPECT_THAT(FaultsOf({{Field::kFlopsPerSample, 1e9}}), IsEmpty());
  EXPECT_THAT(FaultsOf({{Field::kPeakFlopsPerSecond, 1e9}}), IsEmpty());
}

TEST(Rules, PeaksAreOfEachGpu) {
  EXPECT_DOUBLE_EQ(*PeakThroughput(Sound({{Field::kFlopsPerSample, 1e9},
                                          {Field::kPeakFlopsPerSecond, 5e11},
                                          {Field::kColocate, std::string("all")},
                                          {Field::kGpuUuids, std::string("GPU-1;GPU-2;GPU-3")}})),
                   1500);
  EXPECT_DOUBLE_EQ(*PeakThroughput(Sound({{Field::kFlopsPerSample, 1e9},
                                          {Field::kPeakFlopsPerSecond, 5e11},
                                          {Field::kWorldSize, int64_t{4}}})),
                   2000);
}

// Winograd's convolution needs a quarter of the multiplications of a direct one.
TEST(Rules, Fp32MayNeedFewerOperationsThanADirectConvolution) {
  const auto of = [](double peak) {
    return std::vector<Change>{{Field::kPrecision, std::string("fp32")},
                               {Field::kFlopsPerSample, 1e9},
                               {Field::kPeakFlopsPerSecond, peak * 1e9}};
  };
  EXPECT_THAT(FaultsOf(of(153)), IsEmpty());
  EXPECT_THAT(FaultsOf(of(152)), ElementsAre(HasSubstr("measured peaks")));
}

// Case 34: enforced 315 W, default 350 W.
TEST(Rules, APowerLimitBelowTheDefaultIsMarkedWithItsShare) {
  const std::vector<Change> limited = {{Field::kPowerLimitWatts, 315.0},
                                       {Field::kPowerLimitDefaultWatts, 350.0}};
  const Verdict verdict = Judge(Sound(limited));
  EXPECT_THAT(verdict.marks, ElementsAre("power_limited"));
  EXPECT_THAT(verdict.notes, ElementsAre("power limited 90 %"));
  EXPECT_DOUBLE_EQ(*PowerLimitRatio(Sound(limited)), 0.9);
}

TEST(Rules, APowerLimitAtTheDefaultIsNotMarked) {
  EXPECT_THAT(MarksOf({{Field::kPowerLimitWatts, 349.0}, {Field::kPowerLimitDefaultWatts, 350.0}}),
              IsEmpty());
  EXPECT_THAT(MarksOf({{Field::kPowerLimitWatts, 450.0}, {Field::kPowerLimitDefaultWatts, 350.0}}),
              IsEmpty());
}

// Case 37: without a sensor there is nothing to mark and no energy to invent.
TEST(Rules, AMissingFigureIsNoEvidence) {
  EXPECT_THAT(MarksOf({{Field::kPowerLimitWatts, 100.0}}), IsEmpty());
  EXPECT_THAT(MarksOf({{Field::kPowerLimitDefaultWatts, 350.0}}), IsEmpty());
  EXPECT_THAT(MarksOf({{Field::kPowerLimitWatts, 0.0}, {Field::kPowerLimitDefaultWatts, 350.0}}),
              IsEmpty());
  Record record = Sound();
  ApplyRules(record);
  EXPECT_FALSE(record.Has(Field::kEnergyPerSampleJoules));
}

TEST(Rules, AGpuThatOthersUsedIsShared) {
  EXPECT_THAT(MarksOf({{Field::kDeviceUsedBeforeBytes, kMostUsedBeforeBytes + 1}}),
              ElementsAre("shared"));
  EXPECT_THAT(MarksOf({{Field::kDeviceUsedBeforeBytes, kMostUsedBeforeBytes}}), IsEmpty());
  EXPECT_THAT(MarksOf({{Field::kDeviceUsedBeforeBytes, kMostUsedBeforeBytes + 1},
                       {Field::kExclusive, std::string("verified")}}),
              IsEmpty());
  EXPECT_THAT(MarksOf({{Field::kDeviceUsedBeforeBytes, kMostUsedBeforeBytes + 1},
                       {Field::kGpuUuids, std::string("CPU-1")}}),
              IsEmpty());
}

TEST(Rules, SimulatedFiguresAreMarkedAndNeverUnsettled) {
  EXPECT_THAT(MarksOf({{Field::kSimulated, true}, {Field::kThermal, std::string("settled")}}),
              ElementsAre("simulated"));
}

TEST(Rules, ACellWithoutAMeasurementHasNoVerdict) {
  for (const char* outcome : {"mem_limit", "fail", "lost", "cancelled"}) {
    Record record = Sound({{Field::kOutcome, std::string(outcome)}});
    ApplyRules(record);
    EXPECT_FALSE(record.Has(Field::kVerdict)) << outcome;
    EXPECT_FALSE(record.Has(Field::kMarks)) << outcome;
  }
  Record pending;
  ApplyRules(pending);
  EXPECT_EQ(pending, Record());
}

TEST(Rules, SimulatedIsMarkedWithoutAMeasurementToo) {
  Record record = Sound({{Field::kOutcome, std::string("mem_limit")}, {Field::kSimulated, true}});
  ApplyRules(record);
  EXPECT_THAT(record.List(Field::kMarks), ElementsAre("simulated"));
}

TEST(Rules, EnergyPerSampleIsEnergyOverSamples) {
  Record record = Sound({{Field::kEnergyJoules, 32000.0}});
  ApplyRules(record);
  EXPECT_EQ(record.Number(Field::kEnergyPerSampleJoules), 0.5);
}

TEST(Rules, EnergyWithoutSamplesIsNotKnown) {
  Record record = Sound({{Field::kEnergyJoules, 32000.0}, {Field::kSamples, int64_t{0}}});
  ApplyRules(record);
  EXPECT_FALSE(record.Has(Field::kEnergyPerSampleJoules));
}

TEST(Rules, StoredVerdictsDoNotCount) {
  Record record = Sound({{Field::kVerdict, std::string("invalid")},
                         {Field::kMarks, std::string("suspect")},
                         {Field::kEnergyPerSampleJoules, 7.0}});
  ApplyRules(record);
  EXPECT_EQ(record.Text(Field::kVerdict), "valid");
  EXPECT_THAT(record.List(Field::kMarks), IsEmpty());
  EXPECT_FALSE(record.Has(Field::kEnergyPerSampleJoules));
}

TEST(Rules, ApplyingThemTwiceChangesNothing) {
  Record once = Sound({{Field::kThrottleRatio, 0.5}, {Field::kEnergyJoules, 1.0}});
  ApplyRules(once);
  Record twice = once;
  ApplyRules(twice);
  EXPECT_EQ(once, twice);
}

TEST(Rules, TheIndicativeMarkStandsBehindSuspect) {
  Record record = Sound({{Field::kXids, std::string("63")}});
  ApplyRules(record);
  AddIndicative(record);
  EXPECT_THAT(record.List(Field::kMarks), ElementsAre("suspect", "indicative"));
  record = Sound({{Field::kStopReason, std::string("max_seconds")}});
  ApplyRules(record);
  AddIndicative(record);
  EXPECT_THAT(record.List(Field::kMarks), ElementsAre("indicative", "unconverged"));
}

}  // namespace
}  // namespace assay
