#include "coordinator/api/run_answers.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/results/row_groups.h"
#include "common/results/rules.h"
#include "common/wire/wire.h"
#include "coordinator/cell/cell_record.h"

namespace assay {
namespace {

constexpr size_t kMostEndedAMessage = 1'000;
// A line of progress, not the whole story: `assay show` has that.
constexpr size_t kMaxEndMessageBytes = 512;

std::string Name(const std::string& text) { return wire::CleanText(text, wire::kMaxNameBytes); }
std::string Sentence(const std::string& text) {
  return wire::CleanText(text, wire::kMaxSentenceBytes);
}

void Fill(const ActiveCell& cell, v1::CellProgress* out) {
  out->set_cell(cell.cell);
  out->set_label(Name(cell.label));
  out->set_node(Name(cell.node));
  out->set_phase(Name(cell.phase));
  out->set_step(cell.step);
  out->set_throughput(cell.throughput);
  out->set_unit(Name(cell.unit));
  out->set_seconds_left(cell.seconds_left);
  out->set_seconds_running(cell.seconds_running);
  out->set_attempt_number(cell.attempt_number);
}

void Fill(const EndedCell& cell, v1::CellEnd* out) {
  out->set_cell(cell.cell);
  out->set_label(Name(cell.label));
  out->set_outcome(wire::ToProto(cell.outcome));
  out->set_reason(Name(cell.reason));
  out->set_message(wire::CleanText(cell.message, kMaxEndMessageBytes));
  out->set_throughput(cell.throughput);
  out->set_unit(Name(cell.unit));
}

void Fill(const HeldCell& held, v1::HeldCell* out) {
  out->set_attempt(Name(held.attempt));
  out->set_run(Name(held.run));
  out->set_cell(held.cell);
  out->set_label(Name(held.label));
}

void Fill(const AttemptRow& attempt, const SentinelReadings& readings, v1::AttemptDetail* out) {
  out->set_attempt(attempt.id);
  out->set_number(attempt.number);
  out->set_node(Name(attempt.node));
  out->set_state(attempt.state == AttemptState::kEnded ? "ended" : "started");
  out->set_outcome(wire::ToProto(attempt.outcome));
  out->set_reason(Name(attempt.reason));
  out->set_message(Sentence(attempt.message));
  out->set_counted(attempt.counted);
  out->set_started_at_unix_ms(attempt.started_at_unix_ms);
  out->set_log_tail(wire::CleanTail(attempt.log_tail, wire::kMaxLogTailBytes));
  Record record = attempt.record;
  readings.FillDrift(record);
  ApplyRules(record);
  wire::ToProto(record, out->mutable_record());
  out->set_cell_file(wire::CleanText(attempt.cell_file, wire::kMaxFieldTextBytes));
  out->set_runner(Name(attempt.runner));
  for (const MemberRow& member : attempt.members) out->add_gpu_uuids(Name(member.gpu_uuid));
}

}  // namespace

void FillSummary(const RunOverview& overview, v1::RunSummary* out) {
  out->set_id(overview.run.id);
  out->set_name(Name(overview.run.name));
  out->set_state(std::string(RunStateName(overview.run.state)));
  out->set_cells(overview.run.cells);
  out->set_started_at_unix_ms(overview.run.started_at_unix_ms != 0
                                  ? overview.run.started_at_unix_ms
                                  : overview.run.submitted_at_unix_ms);
  out->set_slices(overview.run.slice.count);
  for (const uint32_t slice : overview.slices) out->add_slices_here(slice);
  out->mutable_labels()->insert(overview.run.labels.begin(), overview.run.labels.end());
  uint64_t done = 0;
  uint64_t failed = 0;
  for (const auto& [outcome, count] : overview.outcomes) {
    done += count;
    if (IsFailure(outcome)) failed += count;
    if (outcome == Outcome::kOk) out->set_ok(count);
    (*out->mutable_outcomes())[std::string(OutcomeName(outcome))] = count;
  }
  out->set_done(done);
  out->set_failed(failed);
}

const RunOverview* FindResumable(const std::vector<RunOverview>& runs, const std::string& digest,
                                 const Slice& slice) {
  for (const RunOverview& overview : runs) {
    const RunRow& run = overview.run;
    // All slices of a run have one id, also where they have been merged into it.
    const bool same = slice.IsWhole() ? run.digest == digest && run.slice.IsWhole()
                                      : run.id == SlicedRunId(digest, slice);
    if (!same) continue;
    if (!IsEnded(run.state)) return &overview;
    uint64_t done = 0;
    bool failed = false;
    for (const auto& [outcome, count] : overview.outcomes) {
      done += count;
      failed = failed || IsFailure(outcome) || outcome == Outcome::kCancelled;
    }
    // No cell at all: no target came in time.
    if (failed || done < run.cells || run.cells == 0) return &overview;
  }
  return nullptr;
}

absl::StatusOr<Comparands> ComparandsOf(ResultReader& reader, const RunRow& run,
                                        const std::vector<Spec>& specs, const CellRow* one) {
  constexpr uint32_t kCellsAtOnce = 500;
  Comparands comparands;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<SpecResult> peaks, reader.ListPeaks());
  for (const SpecResult& peak : peaks) {
    const std::optional<AttemptRow>& attempt = peak.result.attempt;
    comparands.peaks.Add(
        CellRecord(RunRow{}, peak.spec, peak.result.cell, attempt ? &*attempt : nullptr));
  }
  RowGroups groups;
  std::map<size_t, std::vector<uint64_t>> valid;  // cells by group
  const auto add = [&](const CellResult& cell) {
    if (!cell.attempt.has_value() || cell.cell.spec_index >= specs.size()) return;
    if (one == nullptr) comparands.readings.Add(cell.attempt->record);
    Record record = CellRecord(run, specs[cell.cell.spec_index], cell.cell, &*cell.attempt);
    comparands.peaks.Join(record);
    const Verdict verdict = Judge(record);
    if (!verdict.has_measurement) return;
    if (!verdict.faults.empty()) {
      comparands.invalid.insert(cell.cell.cell);
      return;
    }
    valid[groups.Add(record)].push_back(cell.cell.cell);
  };
  for (uint64_t after = 0;;) {
    ASSAY_ASSIGN_OR_RETURN(
        const std::vector<CellResult> cells,
        one == nullptr ? reader.ListCells(run.id, after, kCellsAtOnce) : reader.ListRepeats(*one));
    for (const CellResult& cell : cells) add(cell);
    if (cells.empty() || one != nullptr) break;
    after = cells.back().cell.cell;
  }
  for (const auto& [group, cells] : valid) {
    if (cells.size() == 1) comparands.indicative.insert(cells[0]);
  }
  return comparands;
}

Record JudgedRecord(const RunRow& run, const Spec& spec, const CellRow& cell,
                    const AttemptRow* attempt, const Comparands& comparands) {
  Record record = CellRecord(run, spec, cell, attempt);
  comparands.readings.FillDrift(record);
  comparands.peaks.Join(record);
  ApplyRules(record);
  if (comparands.indicative.contains(cell.cell)) AddIndicative(record);
  return record;
}

void FillCell(const RunRow& run, const Spec& spec, const CellResult& result,
              const std::vector<AttemptRow>& attempts, const Comparands& comparands,
              v1::CellDetail* out) {
  out->set_run(run.id);
  out->set_cell(result.cell.cell);
  wire::ToProto(spec, out->mutable_spec());
  out->set_target(Name(result.cell.target));
  out->set_repeat(result.cell.repeat);
  const AttemptRow* counted = result.attempt.has_value() ? &*result.attempt : nullptr;
  wire::ToProto(JudgedRecord(run, spec, result.cell, counted, comparands), out->mutable_record());
  for (const AttemptRow& attempt : attempts) {
    Fill(attempt, comparands.readings, out->add_attempts());
  }
}

std::vector<v1::RunUpdate> UpdatesOf(const RunView& view) {
  std::vector<v1::RunUpdate> updates;
  size_t at = 0;
  do {
    v1::RunUpdate update;
    update.set_run(view.run);
    update.set_name(Name(view.name));
    update.set_state(std::string(RunStateName(view.state)));
    update.set_cells(view.cells);
    update.set_done(view.done);
    for (const auto& [outcome, count] : view.outcomes)
      (*update.mutable_outcomes())[outcome] = count;
    for (const ActiveCell& cell : view.active) Fill(cell, update.add_active());
    for (size_t i = 0; i < kMostEndedAMessage && at < view.ended.size(); ++i, ++at) {
      Fill(view.ended[at], update.add_ended());
    }
    update.set_seconds_left(view.seconds_left);
    update.set_waiting_for(Sentence(view.waiting_for.empty() ? view.message : view.waiting_for));
    update.set_final(view.final && at == view.ended.size());
    updates.push_back(std::move(update));
  } while (at < view.ended.size());
  return updates;
}

v1::RunUpdate FinalUpdate(const RunOverview& overview) {
  v1::RunUpdate update;
  update.set_run(overview.run.id);
  update.set_name(Name(overview.run.name));
  update.set_state(std::string(RunStateName(overview.run.state)));
  update.set_cells(overview.run.cells);
  uint64_t done = 0;
  for (const auto& [outcome, count] : overview.outcomes) {
    done += count;
    (*update.mutable_outcomes())[std::string(OutcomeName(outcome))] = count;
  }
  update.set_done(done);
  update.set_waiting_for(Sentence(overview.run.message));
  update.set_final(true);
  return update;
}

namespace {

void FillAgent(const AgentView& agent, v1::AgentSummary* out) {
  wire::ToProto(agent.inventory, out->mutable_inventory());
  out->set_state(agent.state);
  out->set_address(Name(agent.address));
  out->set_last_seen_unix_ms(agent.last_seen_unix_ms);
  for (const std::string& card : agent.cards) out->add_cards(Name(card));
  out->set_draining(agent.draining);
  for (const HeldCell& held : agent.held) {
    out->add_held_attempts(Name(held.attempt));
    Fill(held, out->add_held());
  }
}

}  // namespace

void FillAgents(const std::vector<AgentView>& agents, const v1::ListAgentsRequest& request,
                size_t budget, v1::ListAgentsReply* out) {
  // Counted along: the size of the whole reply anew for each agent kept the state thread busy for
  // seconds where there are thousands.
  size_t bytes = 0;
  for (const AgentView& agent : agents) {
    const std::string& node = agent.inventory.node;
    if (!request.node().empty() && request.node() != node) continue;
    if (node <= request.after() && !request.after().empty()) continue;
    v1::AgentSummary summary;
    FillAgent(agent, &summary);
    if (summary.ByteSizeLong() > budget) {
      summary.clear_cards();
      v1::NodeInventory* inventory = summary.mutable_inventory();
      const std::string note = fmt::format("its {} devices and {} stacks are too long to be listed",
                                           inventory->devices_size(), inventory->stacks_size());
      inventory->clear_devices();
      inventory->clear_stacks();
      inventory->clear_warnings();
      inventory->add_warnings(note);
    }
    bytes += summary.ByteSizeLong();
    if (bytes > budget && out->agents_size() > 0) return out->set_more(true);
    *out->add_agents() = std::move(summary);
  }
}

void FillDrain(const DrainReply& drained, v1::DrainReply* out) {
  out->set_node(Name(drained.node));
  out->set_state(drained.state);
  for (const HeldCell& held : drained.held) Fill(held, out->add_held());
}

}  // namespace assay
