#include "common/results/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "common/measure/moments.h"
#include "common/measure/percentile.h"
#include "common/results/rules.h"

namespace assay {
namespace {

constexpr std::array<Outcome, 8> kOutcomes = {
    Outcome::kOk,   Outcome::kMemLimit, Outcome::kFail, Outcome::kUnsupported,
    Outcome::kHung, Outcome::kTimeout,  Outcome::kLost, Outcome::kCancelled};
constexpr std::string_view kPending = "pending";

// In the order of the field's doc.
constexpr std::array<std::string_view, 10> kMarkOrder = {
    "suspect",    "unconverged", "unsettled", "throttled", "power_limited",
    "host_bound", "shared",      "mixed",     "simulated", "published"};

struct Group {
  std::vector<size_t> records;
  std::string stack;  // "" until a record knows it
  bool simulated = false;
};

bool IsSimulated(const Record& record) { return record.Flag(Field::kSimulated).value_or(false); }

// Records of one spec on one target with one stack. A cell that never ran may not know its stack;
// it belongs to the group of its spec and target all the same.
std::vector<Group> GroupRecords(std::span<const Record> records) {
  std::vector<Group> groups;
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> by_place;
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    const std::string stack = record.Text(Field::kStack);
    std::vector<size_t>& places = by_place[{record.Text(Field::kKey), record.Text(Field::kTarget)}];
    const auto found = std::find_if(places.begin(), places.end(), [&](size_t at) {
      const Group& group = groups[at];
      return group.stack.empty() || stack.empty() ||
             (group.stack == stack && group.simulated == IsSimulated(record));
    });
    if (found == places.end()) {
      places.push_back(groups.size());
      groups.push_back({{i}, stack, IsSimulated(record)});
      continue;
    }
    Group& group = groups[*found];
    group.records.push_back(i);
    if (group.stack.empty() && !stack.empty()) {
      group.stack = stack;
      group.simulated = IsSimulated(record);
    }
  }
  for (Group& group : groups) {
    std::stable_sort(group.records.begin(), group.records.end(), [&](size_t a, size_t b) {
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
};

SummaryRow BuildRow(std::span<const Record> records, const Group& group, Measured& measured) {
  SummaryRow row;
  row.records = group.records;
  row.outcome = OutcomeText(records, group.records);
  measured.simulated = group.simulated;
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
  for (const std::string_view mark : kMarkOrder) {
    if (std::find(marks.begin(), marks.end(), mark) != marks.end()) row.marks.emplace_back(mark);
  }
  row.step_p50_ms = measure::Median(medians);
  row.processes = static_cast<int64_t>(measured.process_means.size());
  row.indicative = row.processes == 1;
  if (row.processes > 0) row.throughput = measure::Moments(measured.process_means).mean();
  row.interval = measure::MeanInterval(measured.process_means);
  if (row.interval) row.interval_ratio = row.interval->HalfWidth() / *row.throughput;
  return row;
}

void FillRatios(std::vector<SummaryRow>& rows, const std::vector<Measured>& measured) {
  // Simulated figures are never compared with measured ones, images never with sequences.
  std::map<std::pair<bool, std::string>, size_t> bases;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].throughput) continue;
    const auto [base, is_new] = bases.try_emplace({measured[i].simulated, rows[i].unit}, i);
    rows[i].is_base = is_new;
    rows[i].ratio = is_new ? measure::Ratio{1, std::nullopt}
                           : measure::RatioOfMeans(measured[i].process_means,
                                                   measured[base->second].process_means);
  }
}

}  // namespace

std::vector<SummaryRow> Summarize(std::span<const Record> records) {
  std::vector<SummaryRow> rows;
  std::vector<Measured> measured;
  for (const Group& group : GroupRecords(records)) {
    measured.emplace_back();
    rows.push_back(BuildRow(records, group, measured.back()));
  }
  FillRatios(rows, measured);
  return rows;
}

int RunExitCode(std::span<const Outcome> outcomes) {
  constexpr int kCancelled = 130;
  constexpr int kNothingOk = 3;
  bool any_ok = false;
  bool any_failed = false;
  for (const Outcome outcome : outcomes) {
    if (outcome == Outcome::kCancelled) return kCancelled;
    any_ok |= outcome == Outcome::kOk;
    any_failed |= IsFailure(outcome);
  }
  if (!any_ok) return kNothingOk;
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
