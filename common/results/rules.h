// Verdict and marks: what a stored record is worth, by the rule set kRulesVersion of
// common/version.h (docs/method.md gives each rule with its reason).
//
// Computed on reading and never stored, so that a better rule applies to old results too. A rule
// that lacks a field it needs does not fire: a missing figure is no evidence. Thread rule: pure,
// any thread.
#ifndef ASSAY_COMMON_RESULTS_RULES_H_
#define ASSAY_COMMON_RESULTS_RULES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/results/record.h"

namespace assay {

// Limits of the rules; a value at the limit is still sound.
inline constexpr double kMostClockDifferenceRatio = 0.02;     // device against host window
inline constexpr double kMostQuotientDifferenceRatio = 0.01;  // throughput to samples over seconds
inline constexpr double kMostSkippedRatio = 0.01;             // skipped steps over steps
inline constexpr double kMostThrottleRatio = 0.05;            // samples with one throttle reason
inline constexpr double kMostCpuThrottledRatio =
    0.01;  // stopped by the control group, of the window
inline constexpr double kLeastPowerLimitRatio = 0.995;  // enforced over default power limit
inline constexpr double kLeastClockLimitRatio = 0.995;  // application clock over its default
inline constexpr double kMostDriftRatio = 0.02;     // of the sentinel across the cell, up or down
inline constexpr double kLeastOverlapRatio = 0.9;   // of windows that should be at once
inline constexpr double kLeastBusyRatio = 0.9;      // share of the step in which the GPU had work
inline constexpr double kMostOverPeakRatio = 1.05;  // throughput over what the peaks allow
inline constexpr double kMostLossGrowth = 2;        // last loss over the first, or over 1
// A memory figure over the device's total: cards of one name differ by some percent, and of a gang
// the total is the first one's.
inline constexpr double kMostOverMemoryRatio = 1.05;
// Reserved over used: the latter is sampled ten times a second and may miss a short peak.
inline constexpr double kMostReservedRatio = 1.05;
// The agent sees begin and end of a window by two records, each up to some 10 ms late on a loaded
// machine.
inline constexpr double kMostAgentDifferenceSeconds = 0.2;
// Multiplications of a direct 3 x 3 convolution over those of Winograd's F(4 x 4, 3 x 3), which
// cuDNN may take outside the tensor cores (Lavin and Gray, CVPR 2016).
inline constexpr double kWinogradRatio = 4;
// Less than any CUDA context takes (some 250 MiB from Volta on), more than an idle driver.
inline constexpr int64_t kMostUsedBeforeBytes = int64_t{200} << 20;

struct Verdict {
  bool has_measurement = false;
  std::vector<std::string> faults;  // why it is invalid, one sentence each; empty: valid
  std::vector<std::string> marks;   // in the order of the field's doc
  std::vector<std::string>
      notes;  // one sentence for marks that have a figure: "power limited 90 %"
};

Verdict Judge(const Record& record);

// Sets verdict ("valid" or "invalid"; unknown unless the outcome is ok), marks and
// energy_per_sample_joules. Applying it again changes nothing.
void ApplyRules(Record& record);

// Mark of a row that stands on one process, and of the one valid cell in it: no interval, no
// ranking. Which cell that is the records of a whole run tell (common/results/row_groups.h), so no
// rule of one record sets it.
inline constexpr std::string_view kIndicativeMark = "indicative";
void AddIndicative(Record& record);  // after ApplyRules

// The application clock of SM or memory over its default, the lower of the two; nothing where
// neither is known.
std::optional<double> ClockLimitRatio(const Record& record);

// Samples a second that FLOPs over the measured peak and a step's least bytes over the measured
// copy rate leave; nothing where neither pair is known.
std::optional<double> PeakThroughput(const Record& record);

// GPUs whose work the figures are the sum of: ranks, or the neighbours of `colocate: all`; 1 where
// neither is known.
double MeasuredGpus(const Record& record);

// Enforced over default power limit, where both are known and the default is above zero.
std::optional<double> PowerLimitRatio(const Record& record);

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_RULES_H_
