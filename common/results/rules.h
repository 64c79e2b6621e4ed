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
#include <vector>

#include "common/results/record.h"

namespace assay {

// Limits of the rules; a value at the limit is still sound.
inline constexpr double kMostClockDifferenceRatio = 0.02;     // device against host window
inline constexpr double kMostQuotientDifferenceRatio = 0.01;  // throughput to samples over seconds
inline constexpr double kMostSkippedRatio = 0.01;             // skipped steps over steps
inline constexpr double kMostThrottleRatio = 0.05;            // samples with a throttle reason
inline constexpr double kLeastPowerLimitRatio = 0.995;        // enforced over default power limit
inline constexpr double kMostDriftRatio = 0.02;  // of the sentinel across the cell, up or down
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

// Enforced over default power limit, where both are known and the default is above zero.
std::optional<double> PowerLimitRatio(const Record& record);

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_RULES_H_
