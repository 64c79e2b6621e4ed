#include "runners/common/largest_batch_cell.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/measure/largest_batch.h"

namespace assay {
namespace {

nlohmann::json FieldsOf(const record::Result& result) {
  nlohmann::json fields = nlohmann::json::object();
  for (const auto& [name, value] : result.fields) {
    std::visit([&, &key = name](const auto& held) { fields[key] = held; }, value);
  }
  return fields;
}

RunnerResult ResultOf(const ChildEnd& end, int64_t batch) {
  if (end.result) {
    return {end.result->outcome, end.result->reason, end.result->message, FieldsOf(*end.result)};
  }
  return {"fail", "crash", "batch " + std::to_string(batch) + ": " + end.problem,
          nlohmann::json::object()};
}

CellFile CellWith(const CellFile& cell, int64_t batch, int64_t trial_steps) {
  CellFile child = cell;
  child.spec.batch = batch;
  child.trial_steps = trial_steps;
  return child;
}

double NumberOf(const nlohmann::json& fields, const char* name) {
  const auto found = fields.find(name);
  return found != fields.end() && found->is_number() ? found->get<double>() : 0;
}

void PassProgress(const record::Parsed& parsed, RecordWriter& records) {
  if (const auto* progress = std::get_if<record::Progress>(&parsed)) {
    records.Progress(static_cast<uint64_t>(std::max<int64_t>(0, progress->step)),
                     progress->throughput.value_or(0), progress->seconds_left.value_or(0));
  }
}

// What a trial came to where it ends the search: neither fits nor out of memory. `last` keeps what
// the last one that ran out of memory said.
std::optional<RunnerResult> RunTrials(const CellFile& cell, RecordWriter& records,
                                      const RunChild& run, measure::LargestBatchSearch& search,
                                      RunnerResult& out_of_memory) {
  while (const auto batch = search.Next()) {
    const ChildEnd end = run(CellWith(cell, *batch, kTrialSteps),
                             [&](const record::Parsed& parsed) { PassProgress(parsed, records); });
    RunnerResult result = ResultOf(end, *batch);
    if (result.outcome != "ok" && result.outcome != "mem_limit") return result;
    search.Add({.batch = *batch,
                .fits = result.outcome == "ok",
                .used_bytes = NumberOf(result.fields, kTrialUsedBytes),
                .capacity_bytes = NumberOf(result.fields, kTrialCapacityBytes)});
    if (result.outcome == "mem_limit") out_of_memory = std::move(result);
  }
  return std::nullopt;
}

RunnerResult MeasureAt(const CellFile& cell, int64_t batch, RecordWriter& records,
                       const RunChild& run) {
  return ResultOf(run(CellWith(cell, batch, 0),
                      [&](const record::Parsed& parsed) {
                        PassProgress(parsed, records);
                        if (const auto* phase = std::get_if<record::Phase>(&parsed)) {
                          records.Phase(phase->phase);
                        }
                      }),
                  batch);
}

void AddFound(const measure::LargestBatch& found, nlohmann::json& fields) {
  fields["largest_batch"] = found.batch > 0 ? nlohmann::json(found.batch) : nlohmann::json();
  fields["largest_batch_limit"] = found.limit > 0 ? nlohmann::json(found.limit) : nlohmann::json();
  fields["largest_batch_proven"] = found.proven;
  fields["largest_batch_trials"] = found.trials;
}

}  // namespace

RunnerResult RunLargestBatch(const CellFile& cell, RecordWriter& records, const RunChild& run) {
  // One rank has nobody to wait for, and the search may take longer than a gang's start may.
  records.Joined();
  records.Phase("setup");
  measure::LargestBatchSearch search(cell.spec.accumulate);
  RunnerResult result{"mem_limit", "out_of_memory", "", nlohmann::json::object()};
  for (int i = 0; i < kMostMeasurements; ++i) {
    if (auto ended = RunTrials(cell, records, run, search, result)) return *ended;
    const int64_t batch = search.Result().batch;
    if (batch == 0) break;
    result = MeasureAt(cell, batch, records, run);
    if (result.outcome != "mem_limit") break;
    search.Add({.batch = batch, .fits = false});
  }
  AddFound(search.Result(), result.fields);
  return result;
}

}  // namespace assay
