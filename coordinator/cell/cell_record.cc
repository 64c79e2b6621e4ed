#include "coordinator/cell/cell_record.h"

#include <fmt/format.h>

#include <chrono>

namespace assay {
namespace {

// A value of the wrong type is a fault of this file, found by its test; a record without the field
// is all that a user would see of it.
void Put(Record& record, Field field, Value value) {
  record.Set(field, std::move(value)).IgnoreError();
}

void PutText(Record& record, Field field, std::string_view text) {
  if (!text.empty()) record.SetText(field, text);
}

void PutSpec(Record& record, const Spec& spec) {
  PutText(record, Field::kKey, spec.key);
  Put(record, Field::kIndex, static_cast<int64_t>(spec.index));
  PutText(record, Field::kStack, spec.stack);
  PutText(record, Field::kModel, spec.model);
  PutText(record, Field::kMode, spec.mode);
  PutText(record, Field::kPrecision, spec.precision);
  PutText(record, Field::kBatch,
          spec.batch == kBatchMax ? std::string("max") : fmt::format("{}", spec.batch));
  PutText(record, Field::kLane, spec.lane);
  PutText(record, Field::kLayout, spec.layout);
  Put(record, Field::kAccumulate, spec.accumulate);
  PutText(record, Field::kScaling, spec.scaling);
  PutText(record, Field::kImage, spec.image);
  Put(record, Field::kGpus, spec.gpus);
  Put(record, Field::kNodes, spec.nodes);
  PutText(record, Field::kThermal, spec.thermal);
  PutText(record, Field::kColocate, spec.colocate);
  PutText(record, Field::kData, spec.data);
}

}  // namespace

Record CellRecord(const RunRow& run, const Spec& spec, const CellRow& cell,
                  const AttemptRow* counted) {
  Record record;
  if (counted != nullptr) record = counted->record;
  PutSpec(record, spec);
  Put(record, Field::kRepeat, static_cast<int64_t>(cell.repeat));
  Put(record, Field::kCell, static_cast<int64_t>(cell.cell));
  PutText(record, Field::kTarget, cell.target);
  Put(record, Field::kSimulated, cell.simulated || (counted != nullptr && counted->simulated));
  Put(record, Field::kFeasible, cell.outcome != Outcome::kUnsupported);
  if (run.select.placement == Placement::kPerCard) PutText(record, Field::kCard, cell.target);
  if (run.select.placement == Placement::kPerNode) PutText(record, Field::kNode, cell.target);
  if (counted != nullptr) {
    PutText(record, Field::kCard, counted->card);
    PutText(record, Field::kStack, counted->stack);
    PutText(record, Field::kNode, counted->node);
    PutText(record, Field::kAttempt, counted->id);
    PutText(record, Field::kStartedAt, IsoTime(counted->started_at_unix_ms));
    std::string uuids;
    for (const MemberRow& member : counted->members) {
      uuids += (uuids.empty() ? "" : ";") + member.gpu_uuid;
    }
    PutText(record, Field::kGpuUuids, uuids);
  }
  record.Clear(Field::kOutcome);
  record.Clear(Field::kReason);
  record.Clear(Field::kMessage);
  if (cell.outcome.has_value()) {
    PutText(record, Field::kOutcome, OutcomeName(*cell.outcome));
    PutText(record, Field::kReason, cell.reason);
    PutText(record, Field::kMessage, cell.message);
  }
  return record;
}

std::string CellLabel(const Spec& spec, const CellRow& cell) {
  const Spec defaults;
  std::string label = fmt::format(
      "{} {} {} b{} {}", spec.model, spec.mode, spec.precision,
      spec.batch == kBatchMax ? std::string("max") : fmt::format("{}", spec.batch), spec.lane);
  if (spec.layout != defaults.layout) label += " " + spec.layout;
  if (spec.accumulate != defaults.accumulate)
    label += fmt::format(" accumulate {}", spec.accumulate);
  if (!spec.stack.empty()) label += " " + spec.stack;
  if (spec.WorldSize() > 1) label += fmt::format(" {}x{} GPUs", spec.nodes, spec.gpus);
  return fmt::format("{} on {}", label, cell.target);
}

std::string IsoTime(int64_t unix_ms) {
  if (unix_ms == 0) return "";
  namespace chrono = std::chrono;
  const chrono::sys_time<chrono::milliseconds> time{chrono::milliseconds(unix_ms)};
  const auto day = chrono::floor<chrono::days>(time);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss<chrono::milliseconds> clock(time - day);
  const int year = static_cast<int>(date.year());
  if (year < 0 || year > 9999) return "";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", year,
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

}  // namespace assay
