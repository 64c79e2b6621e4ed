#include "common/results/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "common/measure/moments.h"
#include "common/measure/percentile.h"
#include "common/results/row_groups.h"
#include "common/results/rules.h"
#include "common/results/scaling.h"

namespace assay {
namespace {

constexpr std::array<Outcome, 8> kOutcomes = {
    Outcome::kOk,   Outcome::kMemLimit, Outcome::kFail, Outcome::kUnsupported,
    Outcome::kHung, Outcome::kTimeout,  Outcome::kLost, Outcome::kCancelled};
constexpr std::string_view kPending = "pending";

// In the order of the field's doc.
constexpr std::array<std::string_view, 13> kMarkOrder = {
    "suspect",       kIndicativeMark, "unconverged", "unsettled",  "throttled",
    "power_limited", "clock_limited", "drift",       "host_bound", "shared",
    "mixed",         "simulated",     "published"};

// Records of one spec on one target with one stack of the same software, by repeat.
struct Group {
  RowGroup what;
  std::vector<size_t> records;
};

std::vector<Group> GroupRecords(std::span<const Record> records) {
  RowGroups numbers;
  std::vector<Group> groups;
  for (size_t i = 0; i < records.size(); ++i) {
    const size_t group = numbers.Add(records[i]);
    if (group >= groups.size()) groups.resize(group + 1);
    groups[group].records.push_back(i);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i].what = numbers.groups()[i];
    std::stable_sort(groups[i].records.begin(), groups[i].records.end(), [&](size_t a, size_t b) {
      return records[a].Integer(Field::kRepeat).value_or(0) <
             records[b].Integer(Field::kRepeat).value_or(0);
    });
  }
  return groups;
}

void FillTexts(const Record& record, SummaryRow& row) {
  const auto take = [&](std::string& text, Field field) {
    if (text.empty()) text = record.Text(field);
  };
  take(row.key, Field::kKey);
  take(row.target, Field::kTarget);
  take(row.card, Field::kCard);
  take(row.stack, Field::kStack);
  take(row.model, Field::kModel);
  take(row.mode, Field::kMode);
  take(row.precision, Field::kPrecision);
  take(row.batch, Field::kBatch);
  take(row.lane, Field::kLane);
  take(row.image, Field::kImage);
  take(row.unit, Field::kUnit);
  take(row.message, Field::kMessage);
  take(row.reason, Field::kReason);
  const auto take_integer = [&](std::optional<int64_t>& integer, Field field) {
    if (!integer) integer = record.Integer(field);
  };
  take_integer(row.index, Field::kIndex);
  take_integer(row.accumulate, Field::kAccumulate);
  take_integer(row.gpus, Field::kGpus);
  take_integer(row.nodes, Field::kNodes);
}

void RaiseTo(std::optional<int64_t>& most, std::optional<int64_t> value) {
  if (value && (!most || *value > *most)) most = value;
}

// "ok", or "ok (2), fail (1)" in the order of enum Outcome with what is pending last.
std::string OutcomeText(std::span<const Record> records, const std::vector<size_t>& places) {
  std::map<std::string, int64_t> counts;
  for (const size_t place : places) {
    const auto outcome = OutcomeFromName(records[place].Text(Field::kOutcome));
    ++counts[std::string(outcome ? OutcomeName(*outcome) : kPending)];
  }
  if (counts.size() == 1) return counts.begin()->first;
  std::vector<std::string_view> order;
  for (const Outcome outcome : kOutcomes) order.push_back(OutcomeName(outcome));
  order.push_back(kPending);
  std::string text;
  for (const std::string_view name : order) {
    const auto count = counts.find(std::string(name));
    if (count == counts.end()) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} ({})", name, count->second);
  }
  return text;
}

struct Measured {
  std::vector<double> process_means;
  bool simulated = false;
  std::string method;
};

SummaryRow BuildRow(std::span<const Record> records, const Group& group, Measured& measured) {
  SummaryRow row;
  row.records = group.records;
  row.outcome = OutcomeText(records, group.records);
  measured.simulated = group.what.simulated;
  measured.method = group.what.Method();
  std::vector<double> medians;
  std::vector<std::string> marks;
  for (const size_t place : group.records) {
    const Record& record = records[place];
    FillTexts(record, row);
    RaiseTo(row.device_total_bytes, record.Integer(Field::kDeviceTotalBytes));
    const Verdict verdict = Judge(record);
    marks.insert(marks.end(), verdict.marks.begin(), verdict.marks.end());
    if (!verdict.has_measurement) continue;
    if (!verdict.faults.empty()) {
      ++row.invalid;
      continue;
    }
    measured.process_means.push_back(*record.Number(Field::kThroughput));
    if (const auto median = record.Number(Field::kStepP50Ms)) medians.push_back(*median);
    RaiseTo(row.allocated_peak_bytes, record.Integer(Field::kAllocatedPeakBytes));
    RaiseTo(row.reserved_peak_bytes, record.Integer(Field::kReservedPeakBytes));
    RaiseTo(row.device_used_bytes, record.Integer(Field::kDeviceUsedBytes));
  }
  row.step_p50_ms = measure::Median(medians);
  row.processes = static_cast<int64_t>(measured.process_means.size());
  row.indicative = row.processes == 1;
  if (row.indicative) marks.emplace_back(kIndicativeMark);
  for (const std::string_view mark : kMarkOrder) {
    if (std::find(marks.begin(), marks.end(), mark) != marks.end()) row.marks.emplace_back(mark);
  }
  if (row.processes > 0) row.throughput = measure::Moments(measured.process_means).mean();
  row.interval = measure::MeanInterval(measured.process_means);
  if (row.interval) row.interval_ratio = row.interval->HalfWidth() / *row.throughput;
  return row;
}

void FillRatios(std::vector<SummaryRow>& rows, const std::vector<Measured>& measured,
                std::string_view baseline) {
  // Simulated figures are never compared with measured ones, images never with sequences, nor what
  // was measured in another way. Two cards are compared by one spec on one stack.
  const auto alike = [&](size_t i) {
    const bool any = baseline.empty();
    return std::tuple(measured[i].simulated, rows[i].unit, measured[i].method,
                      any ? "" : rows[i].key, any ? "" : rows[i].stack);
  };
  std::map<decltype(alike(0)), size_t> bases;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].throughput && (baseline.empty() || rows[i].card == baseline)) {
      bases.try_emplace(alike(i), i);
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto base = bases.find(alike(i));
    if (!rows[i].throughput || base == bases.end()) continue;
    rows[i].is_base = base->second == i;
    rows[i].ratio = rows[i].is_base ? measure::Ratio{1, std::nullopt}
                                    : measure::RatioOfMeans(measured[i].process_means,
                                                            measured[base->second].process_means);
  }
}

// Marks gangs that scale better than they can (common/results/scaling.h).
void MarkSuspects(std::span<const Record> records, const std::vector<Measured>& measured,
                  std::vector<SummaryRow>& rows) {
  std::vector<ScalingRow> scaling;
  for (size_t i = 0; i < rows.size(); ++i) {
    const SummaryRow& row = rows[i];
    const Record& record = records[row.records.front()];
    scaling.push_back(
        {fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", measured[i].simulated,
                     measured[i].method, row.unit, row.target, row.stack, row.model, row.mode,
                     row.precision, row.batch, row.image, row.accumulate.value_or(1),
                     record.Text(Field::kLayout), record.Text(Field::kColocate),
                     record.Text(Field::kData), record.Text(Field::kThermal)),
         row.gpus.value_or(1) * row.nodes.value_or(1), measured[i].process_means});
  }
  const std::vector<bool> suspect = SuspectScaling(scaling);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string>& marks = rows[i].marks;
    if (suspect[i] && (marks.empty() || marks[0] != kMarkOrder[0])) {
      marks.insert(marks.begin(), std::string(kMarkOrder[0]));
    }
  }
}

// Names what keeps rows of one spec, target and stack apart.
void TellApart(std::vector<SummaryRow>& rows, const std::vector<Group>& groups) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<size_t>> by_place;
  for (size_t i = 0; i < rows.size(); ++i) {
    by_place[{rows[i].key, rows[i].target, rows[i].stack}].push_back(i);
  }
  for (const auto& [unused, places] : by_place) {
    for (const size_t a : places) {
      for (const size_t b : places) {
        if (rows[a].apart.empty()) rows[a].apart = groups[a].what.DifferenceFrom(groups[b].what);
      }
    }
  }
}

}  // namespace

std::vector<SummaryRow> Summarize(std::span<const Record> records, std::string_view baseline) {
  std::vector<SummaryRow> rows;
  std::vector<Measured> measured;
  const std::vector<Group> groups = GroupRecords(records);
  for (const Group& group : groups) {
    measured.emplace_back();
    rows.push_back(BuildRow(records, group, measured.back()));
  }
  TellApart(rows, groups);
  FillRatios(rows, measured, baseline);
  MarkSuspects(records, measured, rows);
  return rows;
}

int RunExitCode(std::span<const Outcome> outcomes, size_t invalid) {
  constexpr int kCancelled = 130;
  constexpr int kNothingMeasured = 3;
  size_t ok = 0;
  bool any_failed = invalid > 0;
  for (const Outcome outcome : outcomes) {
    if (outcome == Outcome::kCancelled) return kCancelled;
    ok += outcome == Outcome::kOk ? 1 : 0;
    any_failed |= IsFailure(outcome);
  }
  if (ok <= invalid) return kNothingMeasured;
  return any_failed ? 1 : 0;
}

std::string OutcomeCounts(std::span<const Outcome> outcomes) {
  std::string text;
  for (const Outcome outcome : kOutcomes) {
    const auto count = std::count(outcomes.begin(), outcomes.end(), outcome);
    if (count == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", count, OutcomeName(outcome));
  }
  return text.empty() ? "no cells" : text;
}

}  // namespace assay
