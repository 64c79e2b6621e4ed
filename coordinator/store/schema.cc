#include "coordinator/store/schema.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "common/results/record.h"
#include "common/status/status.h"

namespace assay {
namespace {

// From version n to n + 1, at index n. A published step is never changed: a later one is added.
// Times are milliseconds since 1970 in UTC, flags 0 or 1, selection, members and labels JSON.
constexpr std::array<const char*, kSchemaVersion> kSteps = {
    R"sql(
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (0);
CREATE TABLE runs (
  id TEXT PRIMARY KEY NOT NULL, request_id TEXT NOT NULL, name TEXT NOT NULL,
  digest TEXT NOT NULL, yaml BLOB NOT NULL, file_name TEXT NOT NULL, baseline TEXT NOT NULL,
  selection TEXT NOT NULL, repeat INTEGER NOT NULL, specs INTEGER NOT NULL,
  seed INTEGER NOT NULL, state TEXT NOT NULL, message TEXT NOT NULL,
  binding_closed INTEGER NOT NULL, cells INTEGER NOT NULL, generation INTEGER NOT NULL,
  rerun_request_id TEXT NOT NULL, submitted_at INTEGER NOT NULL, started_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL);
CREATE TABLE specs (
  run TEXT NOT NULL REFERENCES runs(id), spec_index INTEGER NOT NULL, spec TEXT NOT NULL,
  PRIMARY KEY (run, spec_index)) WITHOUT ROWID;
CREATE TABLE cells (
  run TEXT NOT NULL, cell INTEGER NOT NULL, spec_index INTEGER NOT NULL,
  repeat INTEGER NOT NULL, target TEXT NOT NULL, simulated INTEGER NOT NULL,
  run_order INTEGER NOT NULL, admitted INTEGER NOT NULL, attempts INTEGER NOT NULL,
  first_attempt INTEGER NOT NULL, outcome TEXT, reason TEXT NOT NULL, message TEXT NOT NULL,
  counted_attempt TEXT NOT NULL,
  PRIMARY KEY (run, cell), FOREIGN KEY (run, spec_index) REFERENCES specs(run, spec_index))
  WITHOUT ROWID;
CREATE TABLE attempts (
  id TEXT PRIMARY KEY NOT NULL, run TEXT NOT NULL REFERENCES runs(id), cell INTEGER NOT NULL,
  number INTEGER NOT NULL, state TEXT NOT NULL, node TEXT NOT NULL, card TEXT NOT NULL,
  stack TEXT NOT NULL, runner TEXT NOT NULL, members TEXT NOT NULL, simulated INTEGER NOT NULL,
  seed INTEGER NOT NULL, started_at INTEGER NOT NULL, seconds REAL NOT NULL, outcome TEXT,
  reason TEXT NOT NULL, message TEXT NOT NULL, counted INTEGER NOT NULL, late INTEGER NOT NULL,
  reported INTEGER NOT NULL, log_tail TEXT NOT NULL, cell_file TEXT NOT NULL);
CREATE TABLE results (
  attempt_id TEXT PRIMARY KEY NOT NULL REFERENCES attempts(id)) WITHOUT ROWID;
CREATE TABLE nodes (
  node TEXT PRIMARY KEY NOT NULL, session_epoch INTEGER NOT NULL, machine_id TEXT NOT NULL,
  boot_id TEXT NOT NULL, instance TEXT NOT NULL, address TEXT NOT NULL,
  last_hello INTEGER NOT NULL);
)sql",
    // Without these a look at one cell read every attempt, and a list of runs every cell in full.
    R"sql(
CREATE INDEX attempts_by_cell ON attempts (run, cell, number);
CREATE INDEX cells_by_outcome ON cells (run, outcome);
)sql",
    "ALTER TABLE runs ADD COLUMN submitted_by TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE nodes ADD COLUMN draining INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE runs ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';",
    R"sql(
ALTER TABLE runs ADD COLUMN slice INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN slices INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN slice_id TEXT NOT NULL DEFAULT '';
)sql",
    // Every answer with results looks for the peaks of all runs, which are few.
    "CREATE INDEX attempts_of_peaks ON attempts (run, cell) WHERE runner = 'assay-peaks';",
};

const char* ColumnType(FieldType type) {
  switch (type) {
    case FieldType::kInteger:
    case FieldType::kFlag:
      return "INTEGER";
    case FieldType::kNumber:
      return "REAL";
    case FieldType::kText:
    case FieldType::kList:
    case FieldType::kCount:
      break;
  }
  return "TEXT";
}

// The version of the file; 0 for an empty one, else from 1.
absl::StatusOr<int64_t> VersionOf(SqliteDatabase& database) {
  ASSAY_ASSIGN_OR_RETURN(
      const std::optional<int64_t> tables,
      database.QueryInteger("SELECT count(*) FROM sqlite_master WHERE type='table'"));
  if (tables.value_or(0) == 0) return 0;
  ASSAY_ASSIGN_OR_RETURN(const std::optional<int64_t> ours,
                         database.QueryInteger("SELECT count(*) FROM sqlite_master WHERE "
                                               "type='table' AND name='schema_version'"));
  if (ours.value_or(0) == 0) {
    return absl::FailedPreconditionError(
        "the file holds tables that are not Assay's; move it away, or give another folder with "
        "--state");
  }
  ASSAY_ASSIGN_OR_RETURN(const std::optional<int64_t> version,
                         database.QueryInteger("SELECT version FROM schema_version"));
  if (version.value_or(0) < 1) {
    return absl::DataLossError(
        "the file does not say of which version its tables are; move the file away to begin "
        "afresh, and merge exported runs back in");
  }
  return *version;
}

absl::Status AddFieldColumns(SqliteDatabase& database) {
  std::set<std::string> present;
  {
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement columns,
                           database.Prepare("SELECT name FROM pragma_table_info('results')"));
    while (true) {
      ASSAY_ASSIGN_OR_RETURN(const bool row, columns.Step());
      if (!row) break;
      present.insert(columns.Text(0));
    }
  }
  for (const FieldInfo& info : AllFields()) {
    if (info.source == FieldSource::kComputed || present.contains(std::string(info.name))) continue;
    ASSAY_RETURN_IF_ERROR(database.Execute(fmt::format(
        "ALTER TABLE results ADD COLUMN {} {}", QuotedColumn(info.name), ColumnType(info.type))));
  }
  return absl::OkStatus();
}

absl::Status MigrateInTransaction(SqliteDatabase& database, int version) {
  ASSAY_ASSIGN_OR_RETURN(const int64_t from, VersionOf(database));
  if (from > version) {
    return absl::FailedPreconditionError(
        fmt::format("the store has version {} of its tables and this program knows {}; use the "
                    "program that wrote it, or a newer one",
                    from, version));
  }
  for (int64_t step = from; step < version; ++step) {
    ASSAY_RETURN_IF_ERROR(database.Execute(kSteps[static_cast<size_t>(step)]));
  }
  if (from < version) {
    ASSAY_RETURN_IF_ERROR(
        database.Execute(fmt::format("UPDATE schema_version SET version = {}", version)));
  }
  return AddFieldColumns(database);
}

}  // namespace

std::string QuotedColumn(std::string_view name) { return fmt::format("\"{}\"", name); }

absl::Status MigrateSchema(SqliteDatabase& database, int version) {
  ASSAY_RETURN_IF_ERROR(database.Execute("BEGIN IMMEDIATE"));
  absl::Status status = MigrateInTransaction(database, version);
  if (status.ok()) status = database.Execute("COMMIT");
  if (!status.ok() && !database.InAutocommit()) (void)database.Execute("ROLLBACK");
  return status;
}

}  // namespace assay
