#include <fmt/format.h>

#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "common/status/status.h"
#include "coordinator/store/row_json.h"
#include "coordinator/store/sqlite_store.h"

namespace assay {
namespace {

absl::Status NoRun(const std::string& run) {
  return absl::NotFoundError(fmt::format("there is no run {}", run));
}

// The counted attempt of a cell with its record; attempts without one have NULLs.
std::string CellQuery(const char* where) {
  return fmt::format(
      "SELECT {}, {}, {} FROM cells LEFT JOIN attempts ON attempts.id = cells.counted_attempt "
      "LEFT JOIN results ON results.attempt_id = attempts.id WHERE {}",
      CellColumns(), AttemptColumns(), ResultColumns(), where);
}

absl::StatusOr<CellResult> ReadCellResult(const SqliteStatement& row) {
  CellResult result;
  ASSAY_ASSIGN_OR_RETURN(result.cell, ReadCell(row, 0));
  if (row.IsNull(CellColumnCount())) return result;
  ASSAY_ASSIGN_OR_RETURN(AttemptRow attempt,
                         ReadAttempt(row, CellColumnCount(), /*with_text=*/false));
  attempt.record = ReadRecord(row, CellColumnCount() + AttemptColumnCount());
  result.attempt = std::move(attempt);
  return result;
}

absl::StatusOr<std::vector<CellResult>> ReadCellResults(SqliteStatement& statement) {
  std::vector<CellResult> results;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return results;
    ASSAY_ASSIGN_OR_RETURN(CellResult result, ReadCellResult(statement));
    results.push_back(std::move(result));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteReader>> SqliteReader::Open(const std::string& path,
                                                                 SqliteUse use) {
  ASSAY_ASSIGN_OR_RETURN(SqliteDatabase database, SqliteDatabase::Open(path, use));
  ASSAY_RETURN_IF_ERROR(database.Execute("PRAGMA query_only=ON"));
  return std::unique_ptr<SqliteReader>(new SqliteReader(std::move(database)));
}

absl::StatusOr<std::vector<RunOverview>> SqliteReader::ListRuns() {
  std::vector<RunOverview> runs;
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * statement,
      rows_.Cached(fmt::format("SELECT {} FROM runs ORDER BY submitted_at DESC, id DESC",
                               RunColumnsWithoutYaml())));
  const StatementUse use_statement(statement);
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, statement->Step());
    if (!row) break;
    RunOverview overview;
    ASSAY_ASSIGN_OR_RETURN(overview.run, ReadRun(*statement, /*with_yaml=*/false));
    runs.push_back(std::move(overview));
  }
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * counts,
                         rows_.Cached("SELECT outcome, count(*) FROM cells WHERE run = ? AND "
                                      "outcome IS NOT NULL GROUP BY outcome"));
  const StatementUse use_counts(counts);
  for (RunOverview& overview : runs) {
    if (!overview.run.slice.IsWhole()) {
      ASSAY_ASSIGN_OR_RETURN(overview.slices, SlicesOf(overview.run));
    }
    counts->Reset();
    counts->Bind(1, std::string_view(overview.run.id));
    while (true) {
      ASSAY_ASSIGN_OR_RETURN(const bool row, counts->Step());
      if (!row) break;
      if (const auto outcome = OutcomeFromName(counts->Text(0))) {
        overview.outcomes[*outcome] = static_cast<uint64_t>(counts->Integer(1));
      }
    }
  }
  return runs;
}

absl::StatusOr<std::vector<uint32_t>> SqliteReader::SlicesOf(const RunRow& run) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement,
                         rows_.Cached("SELECT DISTINCT (cell - 1) % ?2 + 1 FROM cells WHERE "
                                      "run = ?1 ORDER BY 1"));
  const StatementUse use_statement(statement);
  statement->Bind(1, std::string_view(run.id));
  statement->Bind(2, int64_t{run.slice.count});
  std::vector<uint32_t> slices;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, statement->Step());
    if (!row) return slices;
    slices.push_back(static_cast<uint32_t>(statement->Integer(0)));
  }
}

absl::StatusOr<std::string> SqliteReader::ResolveRun(const std::string& text) {
  if (text == "last") {
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement * statement,
        rows_.Cached("SELECT id FROM runs ORDER BY submitted_at DESC, id DESC LIMIT 1"));
    const StatementUse use_statement(statement);
    ASSAY_ASSIGN_OR_RETURN(const bool row, statement->Step());
    if (!row) return absl::NotFoundError("there is no run yet");
    std::string id = statement->Text(0);
    return id;
  }
  std::string prefix;
  for (const char c : text.substr(0, 32)) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) return NoRun("of that name");
    prefix += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  if (prefix.empty()) return absl::InvalidArgumentError("no run was named");
  // '~' sorts behind every character of an id.
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * statement,
      rows_.Cached("SELECT id FROM runs WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id LIMIT 2"));
  const StatementUse use_statement(statement);
  statement->Bind(1, std::string_view(prefix));
  ASSAY_ASSIGN_OR_RETURN(const bool first, statement->Step());
  if (!first) return NoRun(prefix);
  std::string id = statement->Text(0);
  ASSAY_ASSIGN_OR_RETURN(const bool second, statement->Step());
  const std::string other = second ? statement->Text(0) : std::string();
  if (second && id != prefix) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is the beginning of several runs, {} and {} among them", prefix, id, other));
  }
  return id;
}

absl::StatusOr<RunRow> SqliteReader::GetRun(const std::string& run) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * statement,
      rows_.Cached(fmt::format("SELECT {} FROM runs WHERE id = ?", RunColumns())));
  const StatementUse use_statement(statement);
  statement->Bind(1, std::string_view(run));
  ASSAY_ASSIGN_OR_RETURN(const bool row, statement->Step());
  if (!row) return NoRun(run);
  absl::StatusOr<RunRow> result = ReadRun(*statement);
  return result;
}

absl::StatusOr<std::vector<Spec>> SqliteReader::ListSpecs(const std::string& run) {
  return ReadSpecs(rows_, run);
}

absl::StatusOr<RunSnapshot> SqliteReader::LoadRun(const std::string& run) {
  return LoadRunSnapshot(rows_, run);
}

absl::StatusOr<std::vector<CellResult>> SqliteReader::ListCells(const std::string& run,
                                                                uint64_t after, uint32_t limit) {
  static const std::string sql =
      CellQuery("cells.run = ? AND cells.cell > ? ORDER BY cells.cell LIMIT ?");
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement, rows_.Cached(sql));
  const StatementUse use_statement(statement);
  statement->Bind(1, std::string_view(run));
  statement->Bind(2, static_cast<int64_t>(after));
  statement->Bind(3, int64_t{limit});
  return ReadCellResults(*statement);
}

absl::StatusOr<std::vector<CellResult>> SqliteReader::ListRepeats(const CellRow& cell) {
  static const std::string sql =
      CellQuery("cells.run = ? AND cells.spec_index = ? AND cells.target = ? ORDER BY cells.cell");
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement, rows_.Cached(sql));
  const StatementUse use_statement(statement);
  statement->Bind(1, std::string_view(cell.run));
  statement->Bind(2, int64_t{cell.spec_index});
  statement->Bind(3, std::string_view(cell.target));
  return ReadCellResults(*statement);
}

absl::StatusOr<CellResult> SqliteReader::GetCell(const std::string& run, uint64_t cell) {
  static const std::string sql = CellQuery("cells.run = ? AND cells.cell = ?");
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement, rows_.Cached(sql));
  const StatementUse use_statement(statement);
  statement->Bind(1, std::string_view(run));
  statement->Bind(2, static_cast<int64_t>(cell));
  ASSAY_ASSIGN_OR_RETURN(const bool row, statement->Step());
  if (!row) {
    return absl::NotFoundError(fmt::format("there is no cell {} in run {}", cell, run));
  }
  absl::StatusOr<CellResult> result = ReadCellResult(*statement);
  return result;
}

absl::StatusOr<std::vector<AttemptRow>> SqliteReader::ListAttempts(const std::string& run,
                                                                   uint64_t cell) {
  static const std::string sql = fmt::format(
      "SELECT {}, {} FROM attempts LEFT JOIN results ON results.attempt_id = attempts.id "
      "WHERE attempts.run = ? AND attempts.cell = ? ORDER BY attempts.number, attempts.id",
      AttemptColumns(), ResultColumns());
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement, rows_.Cached(sql));
  const StatementUse use_statement(statement);
  statement->Bind(1, std::string_view(run));
  statement->Bind(2, static_cast<int64_t>(cell));
  std::vector<AttemptRow> attempts;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, statement->Step());
    if (!row) break;
    ASSAY_ASSIGN_OR_RETURN(AttemptRow attempt, ReadAttempt(*statement, 0, /*with_text=*/true));
    attempt.record = ReadRecord(*statement, AttemptColumnCount());
    attempts.push_back(std::move(attempt));
  }
  return attempts;
}

absl::StatusOr<std::vector<SpecResult>> SqliteReader::ListPeaks() {
  // The runner as the index has it, so that SQLite takes it.
  static const std::string sql = CellQuery(
      "attempts.runner = 'assay-peaks' AND attempts.outcome = 'ok' AND "
      "cells.run = attempts.run AND cells.cell = attempts.cell");
  std::vector<SpecResult> peaks;
  {
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement, rows_.Cached(sql));
    const StatementUse use_statement(statement);
    while (true) {
      ASSAY_ASSIGN_OR_RETURN(const bool row, statement->Step());
      if (!row) break;
      ASSAY_ASSIGN_OR_RETURN(CellResult result, ReadCellResult(*statement));
      peaks.push_back({Spec{}, std::move(result)});
    }
  }
  std::map<std::string, std::vector<Spec>> specs;  // by run
  for (SpecResult& peak : peaks) {
    const CellRow& cell = peak.result.cell;
    if (!specs.contains(cell.run)) {
      ASSAY_ASSIGN_OR_RETURN(specs[cell.run], ReadSpecs(rows_, cell.run));
    }
    const std::vector<Spec>& of_run = specs[cell.run];
    if (cell.spec_index < of_run.size()) peak.spec = of_run[cell.spec_index];
  }
  return peaks;
}

absl::StatusOr<std::vector<Spec>> ReadSpecs(SqliteRows& rows, const std::string& run) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement,
                         rows.Cached("SELECT spec FROM specs WHERE run = ? ORDER BY spec_index"));
  const StatementUse use_statement(statement);
  statement->Bind(1, std::string_view(run));
  std::vector<Spec> specs;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, statement->Step());
    if (!row) break;
    absl::StatusOr<Spec> spec = SpecFromJsonText(statement->Text(0));
    if (!spec.ok()) {
      return absl::DataLossError(
          fmt::format("the store holds a spec of run {} that cannot be read: "
                      "{}",
                      run, Message(spec.status())));
    }
    specs.push_back(*std::move(spec));
  }
  return specs;
}

}  // namespace assay
