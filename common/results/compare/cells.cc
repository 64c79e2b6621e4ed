#include "common/results/compare/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/results/rules.h"

namespace assay::compare {
namespace {

uint16_t MarksOf(const Verdict& verdict) {
  uint16_t marks = 0;
  for (const std::string& mark : verdict.marks) {
    marks |= mark == "host_bound"      ? kHostBound
             : mark == "suspect"       ? kSuspect
             : mark == "mixed"         ? kMixed
             : mark == "simulated"     ? kSimulated
             : mark == "throttled"     ? kThrottled
             : mark == "power_limited" ? kPowerLimited
             : mark == "unconverged"   ? kUnconverged
                                       : 0;
  }
  return marks;
}

int64_t BatchOf(const std::string& text) {
  if (text == "max") return kBatchMax;
  int64_t batch = 0;
  std::from_chars(text.data(), text.data() + text.size(), batch);
  return batch;
}

std::string ReasonOf(const Record& record, const Verdict& verdict, std::optional<Outcome> outcome) {
  if (!outcome) return "not done";
  if (*outcome == Outcome::kOk) {
    return verdict.faults.empty() ? "no figure" : "invalid: " + verdict.faults[0];
  }
  std::string reason(OutcomeName(*outcome));
  const std::string code = record.Text(Field::kReason);
  // out_of_memory beside mem_limit says nothing new.
  if (!code.empty() && *outcome != Outcome::kMemLimit) reason += ": " + code;
  return reason;
}

}  // namespace

uint32_t Words::Number(std::string_view text) {
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return found->second;
  const auto number = static_cast<uint32_t>(texts_.size());
  texts_.emplace_back(text);
  numbers_.emplace(texts_.back(), number);
  return number;
}

void Cells::Add(const Record& record, std::string_view run) {
  if (record.Text(Field::kMode) == "peak") return;
  Cell cell;
  for (size_t i = 0; i < kFingerprintSize; ++i) {
    cell.fingerprint[i] = words_.Number(FingerprintText(record, i));
  }
  cell.card = words_.Number(record.Text(Field::kCard));
  cell.node = words_.Number(record.Text(Field::kNode));
  cell.run = words_.Number(run);
  std::vector<std::string> uuids = record.List(Field::kGpuUuids);
  std::sort(uuids.begin(), uuids.end());
  cell.gpu = uuids.empty() ? words_.Number(record.Text(Field::kTarget))
                           : words_.Number(fmt::format("{}", fmt::join(uuids, ";")));
  cell.driver = words_.Number(record.Text(Field::kDriverVersion));
  cell.batch = BatchOf(record.Text(Field::kBatch));
  cell.largest_batch = record.Integer(Field::kLargestBatch).value_or(0);
  cell.repeat = static_cast<int32_t>(record.Integer(Field::kRepeat).value_or(0));
  cell.world_size = static_cast<int32_t>(record.Integer(Field::kWorldSize).value_or(1));
  cell.outcome = OutcomeFromName(record.Text(Field::kOutcome));
  const Verdict verdict = Judge(record);
  cell.marks = MarksOf(verdict);
  if (verdict.has_measurement && verdict.faults.empty()) {
    cell.throughput = std::max(0.0, record.Number(Field::kThroughput).value_or(0));
    cell.watts = std::max(0.0, record.Number(Field::kPowerMeanWatts).value_or(0));
  }
  if (cell.throughput == 0) cell.reason = words_.Number(ReasonOf(record, verdict, cell.outcome));
  cells_.push_back(cell);
}

void Cells::Add(const PublishedFigure& figure) {
  Cell cell;
  const auto set = [&](size_t place, std::string_view text) {
    cell.fingerprint[place] = words_.Number(text);
  };
  set(PlaceOf("model"), figure.model);
  set(PlaceOf("mode"), figure.mode);
  set(PlaceOf("precision"), figure.precision);
  set(PlaceOf("lane"), figure.lane);
  set(PlaceOf("gpus"), fmt::format("{}", figure.gpus));
  set(PlaceOf("nodes"), fmt::format("{}", figure.nodes));
  set(PlaceOf("unit"), figure.unit);
  set(PlaceOf("published"), "true");
  set(PlaceOf("stack"), figure.stack);
  cell.card = words_.Number(figure.card);
  cell.run = words_.Number("published");
  cell.batch = figure.batch;
  cell.world_size = static_cast<int32_t>(figure.gpus * figure.nodes);
  cell.outcome = figure.outcome;
  cell.marks = kPublished;
  if (figure.metric != "throughput") {
    cell.marks |= kOtherMetric;
    cell.reason = words_.Number(fmt::format("metric {} is not compared", figure.metric));
  } else if (figure.outcome != Outcome::kOk) {
    cell.reason = words_.Number(OutcomeName(figure.outcome));
  } else if (figure.value == 0) {
    cell.reason = words_.Number("no figure");
  } else {
    cell.throughput = figure.value;
    cell.watts = figure.watts;
  }
  cells_.push_back(cell);
}

}  // namespace assay::compare
