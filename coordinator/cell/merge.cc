#include "coordinator/cell/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "common/results/reason_codes.h"
#include "common/results/rules.h"
#include "common/runner_protocol/failure_message.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

using Ranks = std::vector<const event::RankReport*>;  // by rank; null where missing

void PutNumber(Record& record, Field field, double value) {
  record.Set(field, value).IgnoreError();
}

// Reasons that name a cause; the others may only be an echo of another rank's end, as when a peer
// leaves a collective.
bool NamesCause(std::string_view reason) {
  return reason == reason::kEccError || reason == reason::kNonFiniteLoss ||
         reason == reason::kShmTooSmall || reason == reason::kGpuGone;
}

// Larger is worse. Out of memory is told before all, since its peers crash or hang because of it.
int Badness(const event::RankReport& report) {
  switch (report.outcome) {
    case Outcome::kMemLimit:
      return 9;
    case Outcome::kFail:
      return NamesCause(report.reason) ? 8 : 6;
    case Outcome::kUnsupported:
      return 7;
    case Outcome::kHung:
      return 5;
    case Outcome::kTimeout:
      return 4;
    case Outcome::kLost:
      return 3;
    case Outcome::kCancelled:
      return 2;
    case Outcome::kOk:
      return 0;
  }
  return 6;
}

void MaxOver(const std::vector<const Record*>& records, Field field, Record& into) {
  const Record* largest = nullptr;
  for (const Record* record : records) {
    const std::optional<double> value = record->Number(field);
    if (!value.has_value()) continue;
    if (largest == nullptr || *value > *largest->Number(field)) largest = record;
  }
  if (largest != nullptr) into.Set(field, largest->Get(field)).IgnoreError();
}

void MinOver(const std::vector<const Record*>& records, Field field, Record& into) {
  const Record* least = nullptr;
  for (const Record* record : records) {
    const std::optional<double> value = record->Number(field);
    if (!value.has_value()) return into.Clear(field);
    if (least == nullptr || *value < *least->Number(field)) least = record;
  }
  if (least != nullptr) into.Set(field, least->Get(field)).IgnoreError();
}

// What any of them saw was there.
void UniteKnown(const std::vector<const Record*>& records, Field field, Record& into) {
  std::vector<std::string> all;
  bool known = false;
  for (const Record* record : records) {
    known = known || record->Has(field);
    for (std::string& item : record->List(field)) all.push_back(std::move(item));
  }
  if (known) into.SetList(field, all).IgnoreError();
}

// A list of which one part is not known is not known.
void UniteOver(const std::vector<const Record*>& records, Field field, Record& into) {
  std::vector<std::string> all;
  for (const Record* record : records) {
    if (!record->Has(field)) return into.Clear(field);
    for (std::string& item : record->List(field)) all.push_back(std::move(item));
  }
  into.SetList(field, all).IgnoreError();
}

// A sum of which one part is not known is not known.
void SumOver(const std::vector<const Record*>& records, Field field, Record& into) {
  double sum = 0;
  for (const Record* record : records) {
    const std::optional<double> value = record->Number(field);
    if (!value.has_value()) return into.Clear(field);
    sum += *value;
  }
  if (InfoOf(field).type == FieldType::kInteger) {
    into.Set(field, static_cast<int64_t>(sum)).IgnoreError();
  } else {
    PutNumber(into, field, sum);
  }
}

void MeanOver(const std::vector<const Record*>& records, Field field, Record& into) {
  SumOver(records, field, into);
  if (const auto sum = into.Number(field); sum.has_value()) {
    PutNumber(into, field, *sum / static_cast<double>(records.size()));
  }
}

void MergeTelemetry(const std::vector<const event::AttemptReport*>& reports, Record& into) {
  std::vector<const Record*> telemetry;
  for (const event::AttemptReport* report : reports) telemetry.push_back(&report->telemetry);
  if (telemetry.size() < 2) return;
  for (const Field field :
       {Field::kDeviceUsedBytes, Field::kDeviceUsedBeforeBytes, Field::kTemperatureMaxCelsius,
        Field::kThrottleRatio, Field::kThrottlePowerCapRatio, Field::kThrottleSwThermalRatio,
        Field::kThrottleHwThermalRatio, Field::kThrottleHwSlowdownRatio,
        Field::kThrottlePowerBrakeRatio, Field::kThrottleSyncBoostRatio,
        Field::kThrottleClockSettingRatio, Field::kCpuThrottledPeriods, Field::kCpuThrottledSeconds,
        Field::kWindowSeconds}) {
    MaxOver(telemetry, field, into);
  }
  for (const Field field :
       {Field::kPowerMeanWatts, Field::kEnergyJoules, Field::kPowerLimitWatts,
        Field::kPowerLimitDefaultWatts, Field::kEccCorrectedBefore, Field::kEccCorrectedAfter,
        Field::kEccUncorrectedBefore, Field::kEccUncorrectedAfter, Field::kRemappedRowsBefore,
        Field::kRemappedRowsAfter}) {
    SumOver(telemetry, field, into);
  }
  for (const Field field :
       {Field::kSmClockMaxHertz, Field::kSmClockApplicationHertz,
        Field::kSmClockApplicationDefaultHertz, Field::kMemoryClockApplicationHertz,
        Field::kMemoryClockApplicationDefaultHertz, Field::kPcieGeneration,
        Field::kPcieGenerationMax, Field::kPcieWidth, Field::kPcieWidthMax}) {
    MinOver(telemetry, field, into);
  }
  MeanOver(telemetry, Field::kSmClockMeanHertz, into);
  MeanOver(telemetry, Field::kMemoryClockMeanHertz, into);
  UniteOver(telemetry, Field::kXids, into);
  UniteKnown(telemetry, Field::kForeignProcesses, into);
  // The weakest claim of any node holds for the gang.
  std::string exclusive = "verified";
  for (const Record* record : telemetry) {
    const std::string text = record->Text(Field::kExclusive);
    if (text == "inferred" && exclusive == "verified") exclusive = text;
    if (text != "inferred" && text != "verified") exclusive = "unknown";
  }
  into.SetText(Field::kExclusive, exclusive);
}

// The two clocks of one rank: the slowest one's, or, where a rank's clocks disagree so far that its
// window is none, that one's. Field by field, one rank's fault would hide behind another's longer
// window.
void MergeWindow(const std::vector<const Record*>& ranks, Record& into) {
  const Record* slowest = nullptr;
  const Record* worst = nullptr;
  double most_apart = kMostClockDifferenceRatio;
  for (const Record* rank : ranks) {
    const std::optional<double> seconds = rank->Number(Field::kSeconds);
    const std::optional<double> host = rank->Number(Field::kHostSeconds);
    if (!seconds || !host) {
      into.Clear(Field::kHostSeconds);
      return MaxOver(ranks, Field::kSeconds, into);
    }
    if (slowest == nullptr || *seconds > *slowest->Number(Field::kSeconds)) slowest = rank;
    const double apart = *seconds > 0 ? std::abs(*host - *seconds) / *seconds
                                      : std::numeric_limits<double>::infinity();
    if (apart <= most_apart) continue;
    most_apart = apart;
    worst = rank;
  }
  for (const Field field : {Field::kSeconds, Field::kHostSeconds}) {
    into.Set(field, (worst != nullptr ? worst : slowest)->Get(field)).IgnoreError();
  }
}

// Steps as one rank claimed and counted them, where a rank's two figures differ.
void MergeStepCounts(const Ranks& ranks, Record& into) {
  int64_t most_apart = 0;
  for (const event::RankReport* rank : ranks) {
    const std::optional<int64_t> claimed = rank->fields.Integer(Field::kSteps);
    const std::optional<int64_t> counted = rank->fields.Integer(Field::kDeviceSteps);
    if (!claimed || !counted) continue;
    // Unsigned, since a report may say any two numbers.
    const auto apart = static_cast<int64_t>(std::min<uint64_t>(
        *claimed > *counted ? static_cast<uint64_t>(*claimed) - static_cast<uint64_t>(*counted)
                            : static_cast<uint64_t>(*counted) - static_cast<uint64_t>(*claimed),
        std::numeric_limits<int64_t>::max()));
    if (apart <= most_apart) continue;
    most_apart = apart;
    into.Set(Field::kSteps, *claimed).IgnoreError();
    into.Set(Field::kDeviceSteps, *counted).IgnoreError();
  }
}

void MergeFields(const Ranks& ranks, Record& into) {
  std::vector<const Record*> fields;
  for (const event::RankReport* rank : ranks) {
    if (rank != nullptr) fields.push_back(&rank->fields);
  }
  if (fields.size() < 2) return;
  for (const Field field :
       {Field::kAllocatedPeakBytes, Field::kReservedPeakBytes, Field::kDeviceUsedBytes}) {
    MaxOver(fields, field, into);
  }
  MergeWindow(fields, into);
}

// Every rank was a world of its own (colocate: all): what it did is added up.
bool IsApart(const Ranks& ranks) {
  return ranks.size() > 1 && std::all_of(ranks.begin(), ranks.end(), [](const auto* rank) {
           return rank != nullptr && rank->fields.Integer(Field::kWorldSize) == 1;
         });
}

void MergeApart(const Ranks& ranks, Record& into) {
  std::vector<const Record*> fields;
  for (const event::RankReport* rank : ranks) fields.push_back(&rank->fields);
  for (const Field field :
       {Field::kSteps, Field::kDeviceSteps, Field::kSamples, Field::kSkippedSteps}) {
    SumOver(fields, field, into);
  }
  for (const Field field :
       {Field::kStepP50Ms, Field::kStepP95Ms, Field::kStepP99Ms, Field::kCvRatio, Field::kCi95Ratio,
        Field::kLatencyP50Ms, Field::kLatencyP95Ms, Field::kLatencyP99Ms}) {
    MaxOver(fields, field, into);
  }
  MinOver(fields, Field::kGpuBusyRatio, into);
  // Each rank has batches of its own: the fewest seen against the most claimed.
  MinOver(fields, Field::kInputBatchesSeen, into);
  for (const Record* each : fields) {
    if (each->Text(Field::kStopReason) != "confidence") {
      into.SetText(Field::kStopReason, each->Text(Field::kStopReason));
    }
  }
}

// Throughput of a whole gang; nothing where a figure is missing or not positive.
void MergeThroughput(const Ranks& ranks, Record& into) {
  if (ranks.size() == 1) return;  // the runner's own figure is the same quotient
  if (IsApart(ranks)) MergeApart(ranks, into);
  MergeStepCounts(ranks, into);
  const std::optional<double> samples = into.Number(Field::kSamples);
  double slowest = 0;
  for (const event::RankReport* rank : ranks) {
    const std::optional<double> seconds = rank->fields.Number(Field::kSeconds);
    if (!seconds.has_value() || !(*seconds > 0)) return into.Clear(Field::kThroughput);
    slowest = std::max(slowest, *seconds);
  }
  if (!samples.has_value() || !(*samples > 0)) return into.Clear(Field::kThroughput);
  PutNumber(into, Field::kThroughput, *samples / slowest);
}

const event::RankReport* Worst(const Ranks& ranks) {
  const event::RankReport* worst = nullptr;
  for (const event::RankReport* rank : ranks) {
    if (rank != nullptr && (worst == nullptr || Badness(*rank) > Badness(*worst))) worst = rank;
  }
  return worst;
}

std::string Place(const std::vector<MemberRow>& members, size_t rank) {
  return fmt::format("rank {} on {} of {}", rank, members[rank].gpu_uuid, members[rank].node);
}

void Decide(const std::vector<MemberRow>& members, const Ranks& ranks,
            const std::optional<Decision>& decided, MergedResult& result) {
  const event::RankReport* worst = Worst(ranks);
  if (worst != nullptr) result.log_tail = worst->log_tail;
  if (result.complete && worst->outcome == Outcome::kOk) {
    result.outcome = Outcome::kOk;  // also where an Abort crossed the last report
    return;
  }
  const bool memory = worst != nullptr && worst->outcome == Outcome::kMemLimit;
  if (decided.has_value() && !memory) {
    result.outcome = decided->outcome;
    result.reason = decided->reason;
    result.message = decided->message;
    return;
  }
  if (worst == nullptr || worst->outcome == Outcome::kOk) {
    const auto missing = std::find(ranks.begin(), ranks.end(), nullptr) - ranks.begin();
    result.outcome = Outcome::kFail;
    result.reason = reason::kBadOutput;
    if (members.empty()) return;
    result.message = fmt::format("{} has no report, so the gang has no result",
                                 Place(members, static_cast<size_t>(missing)));
    return;
  }
  // An agent of another version or worse may say anything: a reason is a code, and there is always
  // a sentence of a length that people read.
  result.outcome = worst->outcome;
  result.reason = KnownReason(worst->reason, DefaultReason(worst->outcome));
  result.message = ScrubForTerminal(ShortMessage(worst->message));
  if (result.message.empty()) {
    result.message = fmt::format("the agent of {} said {} without a message",
                                 members[worst->rank].node, OutcomeName(worst->outcome));
  }
  if (members.size() > 1) {
    result.message = fmt::format("{}: {}", Place(members, worst->rank), result.message);
  }
}

}  // namespace

namespace {

// A rank as it is believed: one that ran elsewhere than it was told is no result of what was asked.
event::RankReport OnItsGpu(const event::RankReport& rank, const MemberRow& member) {
  if (rank.outcome != Outcome::kOk || rank.gpu_uuid.empty() || rank.gpu_uuid == member.gpu_uuid) {
    return rank;
  }
  event::RankReport elsewhere = rank;
  elsewhere.outcome = Outcome::kFail;
  elsewhere.reason = reason::kBadOutput;
  elsewhere.message =
      fmt::format("its agent reports GPU {}, and was given {}", rank.gpu_uuid, member.gpu_uuid);
  return elsewhere;
}

}  // namespace

MergedResult MergeReports(const std::vector<MemberRow>& members,
                          const std::vector<const event::AttemptReport*>& reports,
                          const std::optional<Decision>& decided) {
  MergedResult result;
  Ranks ranks(members.size(), nullptr);
  std::deque<event::RankReport> believed;       // where `ranks` point to
  const event::AttemptReport* first = nullptr;  // of the agent of rank 0
  for (const event::AttemptReport* report : reports) {
    for (const event::RankReport& rank : report->ranks) {
      // A rank is believed only from the node that holds it.
      if (rank.rank >= ranks.size() || members[rank.rank].node != report->node) continue;
      if (ranks[rank.rank] == nullptr) {
        ranks[rank.rank] = &believed.emplace_back(OnItsGpu(rank, members[rank.rank]));
      }
      if (rank.rank == 0) first = report;
    }
    if (std::isfinite(report->seconds)) result.seconds = std::max(result.seconds, report->seconds);
  }
  result.complete = !ranks.empty() && std::find(ranks.begin(), ranks.end(), nullptr) == ranks.end();
  if (first != nullptr) {
    result.record = first->telemetry;
    result.record.Merge(ranks[0]->fields);
    result.started_at_unix_ms = first->started_at_unix_ms;
  }
  MergeFields(ranks, result.record);
  MergeTelemetry(reports, result.record);
  Decide(members, ranks, decided, result);
  if (result.outcome == Outcome::kOk) {
    MergeThroughput(ranks, result.record);
  } else {
    result.record.Clear(Field::kThroughput);
  }
  return result;
}

}  // namespace assay
