#include "coordinator/store/sqlite_store.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

#include "common/status/status.h"
#include "coordinator/store/schema.h"

namespace assay {
namespace {

absl::Status InFile(const std::string& path, const absl::Status& status) {
  if (Message(status).find(path) != std::string::npos) return status;
  return absl::Status(status.code(),
                      absl::string_view(fmt::format("store {}: {}", path, Message(status))));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& path,
                                                               SqliteUse use) {
  absl::StatusOr<SqliteDatabase> database = SqliteDatabase::Open(path, use);
  if (!database.ok()) return InFile(path, database.status());
  if (const absl::Status status = MigrateSchema(*database); !status.ok()) {
    return InFile(path, status);
  }
  return std::unique_ptr<SqliteStore>(new SqliteStore(*std::move(database)));
}

absl::StatusOr<StateSnapshot> SqliteStore::Load() {
  StateSnapshot snapshot;
  std::vector<std::string> unfinished;
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * runs,
      rows_.Cached("SELECT id, request_id, state, cells, specs, generation, rerun_request_id, "
                   "digest FROM runs ORDER BY id"));
  const StatementUse use_runs(runs);
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, runs->Step());
    if (!row) break;
    EndedRun run;
    run.id = runs->Text(0);
    run.request_id = runs->Text(1);
    const std::optional<RunState> state = RunStateFromName(runs->Text(2));
    if (!state.has_value()) {
      return absl::DataLossError(
          fmt::format("the store holds a run {} with state '{}'", run.id, runs->Text(2)));
    }
    run.state = *state;
    run.cells = static_cast<uint64_t>(runs->Integer(3));
    run.specs = static_cast<uint64_t>(runs->Integer(4));
    run.generation = static_cast<uint32_t>(runs->Integer(5));
    run.rerun_request_id = runs->Text(6);
    run.digest = runs->Text(7);
    if (IsEnded(run.state)) {
      snapshot.ended.push_back(std::move(run));
    } else {
      unfinished.push_back(run.id);
    }
  }
  for (const std::string& id : unfinished) {
    ASSAY_ASSIGN_OR_RETURN(RunSnapshot run, LoadRunSnapshot(rows_, id));
    snapshot.unfinished.push_back(std::move(run));
  }
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * nodes,
                         rows_.Cached("SELECT node, session_epoch, machine_id, boot_id, instance, "
                                      "address, last_hello, draining FROM nodes ORDER BY node"));
  const StatementUse use_nodes(nodes);
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, nodes->Step());
    if (!row) break;
    snapshot.nodes.push_back({nodes->Text(0), static_cast<uint64_t>(nodes->Integer(1)),
                              nodes->Text(2), nodes->Text(3), nodes->Text(4), nodes->Text(5),
                              nodes->Integer(6), nodes->Integer(7) != 0});
  }
  return snapshot;
}

absl::StatusOr<std::vector<ImportCounts>> SqliteStore::Commit(std::span<const Batch> batches) {
  if (!failed_.ok()) return failed_;
  std::vector<ImportCounts> counts(batches.size());
  absl::Status status = database_.Execute("BEGIN IMMEDIATE");
  for (size_t i = 0; i < batches.size() && status.ok(); ++i) status = Write(batches[i], counts[i]);
  // WAL with synchronous=FULL: COMMIT syncs the log before it returns.
  if (status.ok()) status = database_.Execute("COMMIT");
  if (status.ok()) return counts;
  if (!database_.InAutocommit()) (void)database_.Execute("ROLLBACK");
  failed_ = absl::Status(status.code(),
                         absl::string_view(fmt::format("the store takes no more results, since a "
                                                       "commit failed: {}",
                                                       Message(status))));
  return failed_;
}

absl::Status SqliteStore::Write(const Batch& batch, ImportCounts& counts) {
  for (const RunRow& run : batch.runs) {
    ASSAY_RETURN_IF_ERROR(rows_.Write(run, OnConflict::kReplace));
  }
  for (const SpecRow& spec : batch.specs) {
    ASSAY_RETURN_IF_ERROR(rows_.Write(spec, OnConflict::kReplace));
  }
  for (const CellRow& cell : batch.cells) {
    ASSAY_RETURN_IF_ERROR(rows_.Write(cell));
  }
  for (const std::string& attempt : batch.uncounted_attempts) {
    ASSAY_RETURN_IF_ERROR(rows_.Uncount(attempt));
  }
  for (const AttemptRow& attempt : batch.attempts) {
    ASSAY_RETURN_IF_ERROR(rows_.Write(attempt));
  }
  for (const NodeRow& node : batch.nodes) ASSAY_RETURN_IF_ERROR(rows_.Write(node));
  for (const AttemptRow& attempt : batch.late_attempts) {
    ASSAY_RETURN_IF_ERROR(rows_.WriteLate(attempt));
  }
  if (batch.import.has_value()) return WriteImport(*batch.import, counts);
  return absl::OkStatus();
}

absl::Status SqliteStore::WriteImport(const Batch::Import& import, ImportCounts& counts) {
  std::set<std::string> runs;
  for (const RunRow& run : import.runs) {
    ASSAY_RETURN_IF_ERROR(rows_.Write(run, OnConflict::kKeep));
    runs.insert(run.id);
  }
  for (const SpecRow& spec : import.specs) {
    ASSAY_RETURN_IF_ERROR(rows_.Write(spec, OnConflict::kKeep));
  }
  for (const CellRow& cell : import.cells) {
    ASSAY_RETURN_IF_ERROR(rows_.WriteImported(cell));
    runs.insert(cell.run);
  }
  for (const AttemptRow& attempt : import.attempts) {
    ASSAY_ASSIGN_OR_RETURN(const bool known, rows_.HasAttempt(attempt.id));
    ++(known ? counts.attempts_known : counts.attempts_new);
    if (known) continue;
    ASSAY_RETURN_IF_ERROR(rows_.Write(attempt));
    runs.insert(attempt.run);
  }
  for (const std::string& run : runs) ASSAY_RETURN_IF_ERROR(rows_.Reconcile(run));
  return absl::OkStatus();
}

absl::StatusOr<RunSnapshot> LoadRunSnapshot(SqliteRows& rows, const std::string& run) {
  RunSnapshot snapshot;
  {
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement * statement,
        rows.Cached(fmt::format("SELECT {} FROM runs WHERE id = ?", RunColumns())));
    const StatementUse use_statement(statement);
    statement->Bind(1, std::string_view(run));
    ASSAY_ASSIGN_OR_RETURN(const bool found, statement->Step());
    if (!found) return absl::NotFoundError(fmt::format("there is no run {}", run));
    ASSAY_ASSIGN_OR_RETURN(snapshot.run, ReadRun(*statement));
  }
  ASSAY_ASSIGN_OR_RETURN(snapshot.specs, ReadSpecs(rows, run));
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * cells,
      rows.Cached(fmt::format("SELECT {} FROM cells WHERE run = ? ORDER BY cell", CellColumns())));
  const StatementUse use_cells(cells);
  cells->Bind(1, std::string_view(run));
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, cells->Step());
    if (!row) break;
    ASSAY_ASSIGN_OR_RETURN(CellRow cell, ReadCell(*cells, 0));
    snapshot.cells.push_back(std::move(cell));
  }
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * attempts,
      rows.Cached(fmt::format("SELECT {} FROM attempts WHERE run = ? ORDER BY cell, number, id",
                              AttemptColumns())));
  const StatementUse use_attempts(attempts);
  attempts->Bind(1, std::string_view(run));
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, attempts->Step());
    if (!row) break;
    ASSAY_ASSIGN_OR_RETURN(AttemptRow attempt, ReadAttempt(*attempts, 0, /*with_text=*/false));
    snapshot.attempts.push_back(std::move(attempt));
  }
  return snapshot;
}

}  // namespace assay
