#include "common/results/rules_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "common/text/number_format.h"

namespace assay {
namespace {

// Changes and slopes, losses, degrees, and what is a name rather than a count.
constexpr Field kSigned[] = {
    Field::kLossFirst,
    Field::kLossLast,
    Field::kDriftRatio,
    Field::kTemperatureMaxCelsius,
    Field::kTemperatureBeginCelsius,
    Field::kTemperatureEndCelsius,
    Field::kSettleBeginCelsius,
    Field::kSettleEndCelsius,
    Field::kSettleCelsiusPerSecond,
    Field::kSettleClockRatioPerSecond,
    Field::kNumaNode,
    Field::kSeed,
};
// Rules of their own say it in better words.
constexpr Field kJudgedElsewhere[] = {Field::kThroughput, Field::kSteps, Field::kSeconds,
                                      Field::kHostSeconds};
// Ratios that are no shares: of spread to mean, and of a rate to a ceiling that caches or another
// algorithm may pass.
constexpr Field kNoShares[] = {Field::kCi95Ratio, Field::kCvRatio, Field::kMfuRatio,
                               Field::kBandwidthRatio};
// Of a quotient that ought to be 1.
constexpr double kRounding = 1e-6;
constexpr size_t kMostSentences = 3;

template <size_t N>
bool IsOneOf(Field field, const Field (&fields)[N]) {
  return std::find(std::begin(fields), std::end(fields), field) != std::end(fields);
}

struct Bound {
  Field field;
  std::string_view name;
  double most;  // the least is 0
};

// By name, as the catalogue says of units, so that a new field has bounds from the start.
std::vector<Bound> MakeBounds() {
  std::vector<Bound> bounds;
  for (const FieldInfo& info : AllFields()) {
    if (info.type != FieldType::kInteger && info.type != FieldType::kNumber) continue;
    if (IsOneOf(info.field, kSigned) || IsOneOf(info.field, kJudgedElsewhere)) continue;
    const bool share = info.name.ends_with("_ratio") && !IsOneOf(info.field, kNoShares);
    bounds.push_back(
        {info.field, info.name, share ? 1 + kRounding : std::numeric_limits<double>::infinity()});
  }
  return bounds;
}

void JudgeMemory(const Record& record, Verdict& verdict) {
  const auto allocated = record.Integer(Field::kAllocatedPeakBytes);
  const auto reserved = record.Integer(Field::kReservedPeakBytes);
  if (allocated && reserved && *allocated > *reserved) {
    verdict.faults.push_back(
        fmt::format("{} allocated of {} reserved", HumanBytes(*allocated), HumanBytes(*reserved)));
  }
  // The simulator's figures are of the catalogue's card, the total is of what stands for the
  // device.
  if (record.Flag(Field::kSimulated).value_or(false)) return;
  const auto total = record.Number(Field::kDeviceTotalBytes);
  for (const Field field :
       {Field::kAllocatedPeakBytes, Field::kReservedPeakBytes, Field::kContextUsedBytes,
        Field::kDeviceUsedBytes, Field::kDeviceUsedBeforeBytes}) {
    const auto bytes = record.Integer(field);
    if (!total || !bytes || !(static_cast<double>(*bytes) > kMostOverMemoryRatio * *total))
      continue;
    verdict.faults.push_back(fmt::format("{} is {} on a device of {}", InfoOf(field).name,
                                         HumanBytes(*bytes),
                                         HumanBytes(static_cast<int64_t>(*total))));
    return;
  }
}

}  // namespace

void JudgeBounds(const Record& record, Verdict& verdict) {
  static const std::vector<Bound> bounds = MakeBounds();
  size_t sentences = 0;
  for (const Bound& bound : bounds) {
    const std::optional<double> value = record.Number(bound.field);
    if (!value || (*value >= 0 && *value <= bound.most)) continue;
    verdict.faults.push_back(
        *value < 0 ? fmt::format("{} is {:.4g}, below zero", bound.name, *value)
                   : fmt::format("{} is {:.4g}, and a share is at most 1", bound.name, *value));
    if (++sentences == kMostSentences) break;
  }
  JudgeMemory(record, verdict);
}

}  // namespace assay
