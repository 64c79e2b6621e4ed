#include "coordinator/store/fake_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "common/status/status.h"

namespace assay {
namespace {

// What a snapshot leaves out of an attempt.
AttemptRow WithoutTexts(AttemptRow attempt) {
  attempt.record = Record();
  attempt.log_tail.clear();
  attempt.cell_file.clear();
  return attempt;
}

// As Batch::Import says.
int WorthOf(const std::optional<Outcome>& outcome) {
  if (!outcome.has_value()) return 0;
  if (*outcome == Outcome::kCancelled) return 1;
  if (IsFailure(*outcome)) return 2;
  return *outcome == Outcome::kUnsupported ? 3 : *outcome == Outcome::kMemLimit ? 4 : 5;
}

bool Replaces(const CellRow& imported, const CellRow& stored) {
  // Of the texts the smaller one wins: its side has the other's.
  return std::tuple(WorthOf(imported.outcome), imported.first_attempt, imported.attempts,
                    stored.counted_attempt, stored.reason, stored.message) >
         std::tuple(WorthOf(stored.outcome), stored.first_attempt, stored.attempts,
                    imported.counted_attempt, imported.reason, imported.message);
}

void ApplyLate(const AttemptRow& late, std::map<std::string, AttemptRow>& attempts) {
  const auto [found, inserted] = attempts.try_emplace(late.id, late);
  AttemptRow& stored = found->second;
  if (inserted || stored.late || stored.reported) return;
  if (std::none_of(stored.members.begin(), stored.members.end(),
                   [&](const MemberRow& member) { return member.node == late.node; })) {
    return;
  }
  if (stored.counted) {
    stored.reported = true;
    stored.message += LateNote(late.outcome.value_or(Outcome::kLost));
    return;
  }
  stored.outcome = late.outcome;
  stored.reason = late.reason;
  stored.message = late.message;
  stored.record = late.record;
  stored.log_tail = late.log_tail;
  stored.seconds = late.seconds;
  stored.late = late.late;
}

}  // namespace

void FakeStore::FailCommits(absl::Status status) {
  MutexLock lock(mutex_);
  failure_ = std::move(status);
}

int FakeStore::commits() const {
  MutexLock lock(mutex_);
  return commits_;
}

absl::StatusOr<StateSnapshot> FakeStore::Load() {
  StateSnapshot snapshot;
  std::vector<std::string> unfinished;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, run] : tables_.runs) {
      if (IsEnded(run.state)) {
        snapshot.ended.push_back({id, run.request_id, run.digest, run.state, run.cells, run.specs,
                                  run.generation, run.rerun_request_id});
      } else {
        unfinished.push_back(id);
      }
    }
    for (const auto& [name, node] : tables_.nodes) snapshot.nodes.push_back(node);
  }
  for (const std::string& id : unfinished) {
    ASSAY_ASSIGN_OR_RETURN(RunSnapshot run, LoadRun(id));
    snapshot.unfinished.push_back(std::move(run));
  }
  return snapshot;
}

absl::StatusOr<std::vector<ImportCounts>> FakeStore::Commit(std::span<const Batch> batches) {
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  Tables tables = tables_;
  std::vector<ImportCounts> counts(batches.size());
  for (size_t i = 0; i < batches.size(); ++i) {
    if (absl::Status status = Apply(batches[i], tables, counts[i]); !status.ok()) {
      failure_ = status;
      return status;
    }
  }
  tables_ = std::move(tables);
  ++commits_;
  return counts;
}

absl::Status FakeStore::Apply(const Batch& batch, Tables& tables, ImportCounts& counts) {
  for (const RunRow& run : batch.runs) tables.runs[run.id] = run;
  for (const SpecRow& spec : batch.specs) {
    if (!tables.runs.contains(spec.run)) return absl::InternalError("spec of no run");
    tables.specs[{spec.run, spec.spec.index}] = spec.spec;
  }
  for (const CellRow& cell : batch.cells) {
    if (!tables.specs.contains({cell.run, cell.spec_index})) {
      return absl::InternalError("cell of no spec");
    }
    tables.cells[{cell.run, cell.cell}] = cell;
  }
  for (const std::string& id : batch.uncounted_attempts) {
    const auto found = tables.attempts.find(id);
    if (found != tables.attempts.end()) found->second.counted = false;
  }
  for (const AttemptRow& attempt : batch.attempts) {
    if (!tables.runs.contains(attempt.run)) return absl::InternalError("attempt of no run");
    tables.attempts[attempt.id] = attempt;
  }
  for (const NodeRow& node : batch.nodes) tables.nodes[node.node] = node;
  for (const AttemptRow& late : batch.late_attempts) {
    if (tables.runs.contains(late.run)) ApplyLate(late, tables.attempts);
  }
  return batch.import.has_value() ? Import(*batch.import, tables, counts) : absl::OkStatus();
}

absl::Status FakeStore::Import(const Batch::Import& import, Tables& tables, ImportCounts& counts) {
  for (const RunRow& run : import.runs) tables.runs.try_emplace(run.id, run);
  for (const SpecRow& spec : import.specs) {
    if (!tables.runs.contains(spec.run)) return absl::InternalError("spec of no run");
    tables.specs.try_emplace({spec.run, spec.spec.index}, spec.spec);
  }
  std::set<std::string> touched;
  for (const CellRow& cell : import.cells) {
    if (!tables.specs.contains({cell.run, cell.spec_index})) {
      return absl::InternalError("cell of no spec");
    }
    touched.insert(cell.run);
    const auto [found, inserted] = tables.cells.try_emplace({cell.run, cell.cell}, cell);
    if (!inserted && Replaces(cell, found->second)) found->second = cell;
  }
  for (const AttemptRow& attempt : import.attempts) {
    if (!tables.runs.contains(attempt.run)) return absl::InternalError("attempt of no run");
    touched.insert(attempt.run);
    const bool is_new = tables.attempts.try_emplace(attempt.id, attempt).second;
    ++(is_new ? counts.attempts_new : counts.attempts_known);
  }
  for (const std::string& id : touched) {
    const uint64_t cells = static_cast<uint64_t>(
        std::count_if(tables.cells.begin(), tables.cells.end(),
                      [&](const auto& entry) { return entry.first.first == id; }));
    RunRow& run = tables.runs[id];
    run.cells = std::max(run.cells, cells);
    for (auto& [key, attempt] : tables.attempts) {
      if (attempt.run != id) continue;
      const auto cell = tables.cells.find({id, attempt.cell});
      attempt.counted = cell != tables.cells.end() && cell->second.counted_attempt == key;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RunOverview>> FakeStore::ListRuns() {
  MutexLock lock(mutex_);
  std::vector<RunOverview> runs;
  for (const auto& [id, run] : tables_.runs) {
    RunOverview overview{run, {}, {}};
    overview.run.yaml.clear();
    std::set<uint32_t> slices;
    for (const auto& [key, cell] : tables_.cells) {
      if (key.first == id && !run.slice.IsWhole()) {
        slices.insert(static_cast<uint32_t>((key.second - 1) % run.slice.count + 1));
      }
      if (key.first == id && cell.outcome.has_value()) ++overview.outcomes[*cell.outcome];
    }
    overview.slices.assign(slices.begin(), slices.end());
    runs.push_back(std::move(overview));
  }
  std::sort(runs.begin(), runs.end(), [](const RunOverview& a, const RunOverview& b) {
    return std::pair(a.run.submitted_at_unix_ms, a.run.id) >
           std::pair(b.run.submitted_at_unix_ms, b.run.id);
  });
  return runs;
}

absl::StatusOr<std::string> FakeStore::ResolveRun(const std::string& text) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<RunOverview> runs, ListRuns());
  if (text == "last") {
    if (runs.empty()) return absl::NotFoundError("there is no run yet");
    return runs.front().run.id;
  }
  std::string prefix = text;
  for (char& c : prefix) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (prefix.empty()) return absl::InvalidArgumentError("no run was named");
  std::vector<std::string> fitting;
  for (const RunOverview& overview : runs) {
    if (overview.run.id == prefix) return prefix;
    if (overview.run.id.starts_with(prefix)) fitting.push_back(overview.run.id);
  }
  if (fitting.empty()) return absl::NotFoundError(fmt::format("there is no run {}", text));
  if (fitting.size() > 1) return absl::InvalidArgumentError("the beginning of several runs");
  return fitting.front();
}

absl::StatusOr<RunRow> FakeStore::GetRun(const std::string& run) {
  MutexLock lock(mutex_);
  const auto found = tables_.runs.find(run);
  if (found == tables_.runs.end()) {
    return absl::NotFoundError(fmt::format("there is no run {}", run));
  }
  return found->second;
}

absl::StatusOr<std::vector<Spec>> FakeStore::ListSpecs(const std::string& run) {
  MutexLock lock(mutex_);
  std::vector<Spec> specs;
  for (const auto& [key, spec] : tables_.specs) {
    if (key.first == run) specs.push_back(spec);
  }
  return specs;
}

absl::StatusOr<RunSnapshot> FakeStore::LoadRun(const std::string& run) {
  RunSnapshot snapshot;
  ASSAY_ASSIGN_OR_RETURN(snapshot.run, GetRun(run));
  ASSAY_ASSIGN_OR_RETURN(snapshot.specs, ListSpecs(run));
  MutexLock lock(mutex_);
  for (const auto& [key, cell] : tables_.cells) {
    if (key.first == run) snapshot.cells.push_back(cell);
  }
  for (const auto& [id, attempt] : tables_.attempts) {
    if (attempt.run == run) snapshot.attempts.push_back(WithoutTexts(attempt));
  }
  std::sort(snapshot.attempts.begin(), snapshot.attempts.end(),
            [](const AttemptRow& a, const AttemptRow& b) {
              return std::tie(a.cell, a.number, a.id) < std::tie(b.cell, b.number, b.id);
            });
  return snapshot;
}

CellResult FakeStore::ResultOf(const CellRow& cell) const {
  CellResult result{cell, std::nullopt};
  if (const auto attempt = tables_.attempts.find(cell.counted_attempt);
      attempt != tables_.attempts.end()) {
    result.attempt = attempt->second;
    result.attempt->log_tail.clear();
    result.attempt->cell_file.clear();
  }
  return result;
}

absl::StatusOr<std::vector<CellResult>> FakeStore::ListCells(const std::string& run, uint64_t after,
                                                             uint32_t limit) {
  MutexLock lock(mutex_);
  std::vector<CellResult> results;
  for (auto at = tables_.cells.upper_bound({run, after});
       at != tables_.cells.end() && at->first.first == run && results.size() < limit; ++at) {
    results.push_back(ResultOf(at->second));
  }
  return results;
}

absl::StatusOr<std::vector<CellResult>> FakeStore::ListRepeats(const CellRow& cell) {
  MutexLock lock(mutex_);
  std::vector<CellResult> results;
  for (const auto& [place, stored] : tables_.cells) {
    if (place.first == cell.run && stored.spec_index == cell.spec_index &&
        stored.target == cell.target) {
      results.push_back(ResultOf(stored));
    }
  }
  return results;
}

absl::StatusOr<std::vector<SpecResult>> FakeStore::ListPeaks() {
  MutexLock lock(mutex_);
  std::vector<SpecResult> peaks;
  for (const auto& [place, cell] : tables_.cells) {
    const auto spec = tables_.specs.find({place.first, cell.spec_index});
    SpecResult peak{spec == tables_.specs.end() ? Spec{} : spec->second, ResultOf(cell)};
    const std::optional<AttemptRow>& attempt = peak.result.attempt;
    if (attempt && attempt->runner == kPeaksRunner && attempt->outcome == Outcome::kOk) {
      peaks.push_back(std::move(peak));
    }
  }
  return peaks;
}

absl::StatusOr<CellResult> FakeStore::GetCell(const std::string& run, uint64_t cell) {
  MutexLock lock(mutex_);
  const auto found = tables_.cells.find({run, cell});
  if (found == tables_.cells.end()) {
    return absl::NotFoundError(fmt::format("there is no cell {} in run {}", cell, run));
  }
  return ResultOf(found->second);
}

absl::StatusOr<std::vector<AttemptRow>> FakeStore::ListAttempts(const std::string& run,
                                                                uint64_t cell) {
  MutexLock lock(mutex_);
  std::vector<AttemptRow> attempts;
  for (const auto& [id, attempt] : tables_.attempts) {
    if (attempt.run == run && attempt.cell == cell) attempts.push_back(attempt);
  }
  std::sort(attempts.begin(), attempts.end(), [](const AttemptRow& a, const AttemptRow& b) {
    return std::tie(a.number, a.id) < std::tie(b.number, b.id);
  });
  return attempts;
}

}  // namespace assay
