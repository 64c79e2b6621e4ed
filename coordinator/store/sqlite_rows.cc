#include "coordinator/store/sqlite_rows.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "common/results/record.h"
#include "common/status/status.h"
#include "coordinator/store/row_json.h"
#include "coordinator/store/schema.h"

namespace assay {

const char kRunColumns[] =
    "id, request_id, name, digest, file_name, baseline, selection, repeat, specs, seed, state, "
    "message, binding_closed, cells, generation, rerun_request_id, submitted_at, started_at, "
    "ended_at, yaml, submitted_by";

const char kCellColumns[] =
    "cells.run, cells.cell, cells.spec_index, cells.repeat, cells.target, cells.simulated, "
    "cells.run_order, cells.admitted, cells.attempts, cells.first_attempt, cells.outcome, "
    "cells.reason, cells.message, cells.counted_attempt";

const char kAttemptColumns[] =
    "attempts.id, attempts.run, attempts.cell, attempts.number, attempts.state, attempts.node, "
    "attempts.card, attempts.stack, attempts.runner, attempts.members, attempts.simulated, "
    "attempts.seed, attempts.started_at, attempts.seconds, attempts.outcome, attempts.reason, "
    "attempts.message, attempts.counted, attempts.late, attempts.reported, attempts.log_tail, "
    "attempts.cell_file";

namespace {

constexpr char kStarted[] = "started";
constexpr char kEnded[] = "ended";

std::vector<const FieldInfo*> StoredFields() {
  std::vector<const FieldInfo*> fields;
  for (const FieldInfo& info : AllFields()) {
    if (info.source != FieldSource::kComputed) fields.push_back(&info);
  }
  return fields;
}

const std::vector<const FieldInfo*>& Stored() {
  static const std::vector<const FieldInfo*> fields = StoredFields();
  return fields;
}

absl::Status Damaged(std::string_view what, const absl::Status& why) {
  return absl::DataLossError(
      fmt::format("the store holds a {} that cannot be read: {}", what, Message(why)));
}

absl::Status Unknown(std::string_view what, const std::string& value) {
  return absl::DataLossError(fmt::format("the store holds a {} '{}'", what, value));
}

// Binds values to ?1, ?2, ... in the order of the calls.
class Binder {
 public:
  explicit Binder(SqliteStatement& statement) : statement_(statement) {}
  void Text(std::string_view value) { statement_.Bind(++index_, value); }
  void Blob(std::string_view value) { statement_.BindBlob(++index_, value); }
  void Number(double value) { statement_.Bind(++index_, value); }
  void Flag(bool value) { statement_.Bind(++index_, int64_t{value}); }
  template <class T>
  void Integer(T value) {
    statement_.Bind(++index_, static_cast<int64_t>(value));
  }
  void Text(const std::optional<Outcome>& outcome) {
    if (outcome.has_value()) {
      Text(OutcomeName(*outcome));
    } else {
      statement_.BindNull(++index_);
    }
  }

 private:
  SqliteStatement& statement_;
  int index_ = 0;
};

// "INSERT INTO table(columns) VALUES (?,...) ON CONFLICT(key) DO UPDATE SET c=excluded.c, ..."
std::string Insert(const char* table, const std::vector<std::string>& columns, const char* key,
                   OnConflict on_conflict, const char* where = "") {
  std::string names;
  std::string marks;
  std::string updates;
  for (const std::string& column : columns) {
    const char* comma = names.empty() ? "" : ",";
    names += comma + column;
    marks += fmt::format("{}?", comma);
    updates += fmt::format("{}{}=excluded.{}", comma, column, column);
  }
  const std::string action =
      on_conflict == OnConflict::kKeep ? "NOTHING" : fmt::format("UPDATE SET {}{}", updates, where);
  return fmt::format("INSERT INTO {}({}) VALUES ({}) ON CONFLICT({}) DO {}", table, names, marks,
                     key, action);
}

// Unqualified names of a column list.
std::vector<std::string> Names(std::string_view columns) {
  std::vector<std::string> names;
  while (!columns.empty()) {
    const size_t comma = columns.find(',');
    std::string_view name = columns.substr(0, comma);
    while (name.starts_with(' ')) name.remove_prefix(1);
    if (const size_t dot = name.find('.'); dot != std::string_view::npos) {
      name.remove_prefix(dot + 1);
    }
    names.emplace_back(name);
    columns.remove_prefix(comma == std::string_view::npos ? columns.size() : comma + 1);
  }
  return names;
}

absl::StatusOr<std::optional<Outcome>> ReadOutcome(const SqliteStatement& row, int column) {
  if (row.IsNull(column)) return std::nullopt;
  const std::string text = row.Text(column);
  const std::optional<Outcome> outcome = OutcomeFromName(text);
  if (!outcome.has_value()) return Unknown("outcome", text);
  return outcome;
}

void BindCell(const CellRow& cell, SqliteStatement& statement) {
  Binder bind(statement);
  bind.Text(cell.run);
  bind.Integer(cell.cell);
  bind.Integer(cell.spec_index);
  bind.Integer(cell.repeat);
  bind.Text(cell.target);
  bind.Flag(cell.simulated);
  bind.Integer(cell.order);
  bind.Flag(cell.admitted);
  bind.Integer(cell.attempts);
  bind.Integer(cell.first_attempt);
  bind.Text(cell.outcome);
  bind.Text(cell.reason);
  bind.Text(cell.message);
  bind.Text(cell.counted_attempt);
}

std::string InsertRecordSql() {
  std::vector<std::string> columns = {"attempt_id"};
  for (const FieldInfo* info : Stored()) columns.push_back(QuotedColumn(info->name));
  return Insert("results", columns, "attempt_id", OnConflict::kReplace);
}

}  // namespace

absl::StatusOr<SqliteStatement*> SqliteRows::Cached(const std::string& sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement statement, database_.Prepare(sql));
    found = statements_.emplace(sql, std::move(statement)).first;
  }
  found->second.Reset();
  return &found->second;
}

absl::Status SqliteRows::Write(const RunRow& run, OnConflict on_conflict) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement,
                         Cached(Insert("runs", Names(kRunColumns), "id", on_conflict)));
  Binder bind(*statement);
  bind.Text(run.id);
  bind.Text(run.request_id);
  bind.Text(run.name);
  bind.Text(run.digest);
  bind.Text(run.file_name);
  bind.Text(run.baseline);
  bind.Text(SelectionJson(run.select));
  bind.Integer(run.repeat);
  bind.Integer(run.specs);
  bind.Integer(run.seed);
  bind.Text(RunStateName(run.state));
  bind.Text(run.message);
  bind.Flag(run.binding_closed);
  bind.Integer(run.cells);
  bind.Integer(run.generation);
  bind.Text(run.rerun_request_id);
  bind.Integer(run.submitted_at_unix_ms);
  bind.Integer(run.started_at_unix_ms);
  bind.Integer(run.ended_at_unix_ms);
  bind.Blob(run.yaml);
  bind.Text(run.submitted_by);
  return statement->Run();
}

absl::Status SqliteRows::Write(const SpecRow& spec, OnConflict on_conflict) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * statement,
      Cached(Insert("specs", {"run", "spec_index", "spec"}, "run, spec_index", on_conflict)));
  Binder bind(*statement);
  bind.Text(spec.run);
  bind.Integer(spec.spec.index);
  bind.Text(SpecJson(spec.spec));
  return statement->Run();
}

absl::Status SqliteRows::Write(const CellRow& cell, OnConflict on_conflict) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement,
                         Cached(Insert("cells", Names(kCellColumns), "run, cell", on_conflict)));
  BindCell(cell, *statement);
  return statement->Run();
}

absl::Status SqliteRows::WriteImported(const CellRow& cell) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * statement,
      Cached(Insert("cells", Names(kCellColumns), "run, cell", OnConflict::kReplace,
                    " WHERE excluded.outcome IS NOT NULL AND "
                    "(cells.outcome IS NULL OR cells.outcome = 'cancelled')")));
  BindCell(cell, *statement);
  return statement->Run();
}

absl::Status SqliteRows::Write(const AttemptRow& attempt, OnConflict on_conflict) {
  if (on_conflict == OnConflict::kKeep) {
    ASSAY_ASSIGN_OR_RETURN(const bool known, HasAttempt(attempt.id));
    if (known) return absl::OkStatus();
  }
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * statement,
      Cached(Insert("attempts", Names(kAttemptColumns), "id", OnConflict::kReplace)));
  Binder bind(*statement);
  bind.Text(attempt.id);
  bind.Text(attempt.run);
  bind.Integer(attempt.cell);
  bind.Integer(attempt.number);
  bind.Text(attempt.state == AttemptState::kEnded ? kEnded : kStarted);
  bind.Text(attempt.node);
  bind.Text(attempt.card);
  bind.Text(attempt.stack);
  bind.Text(attempt.runner);
  bind.Text(MembersJson(attempt.members));
  bind.Flag(attempt.simulated);
  bind.Integer(attempt.seed);
  bind.Integer(attempt.started_at_unix_ms);
  bind.Number(attempt.seconds);
  bind.Text(attempt.outcome);
  bind.Text(attempt.reason);
  bind.Text(attempt.message);
  bind.Flag(attempt.counted);
  bind.Flag(attempt.late);
  bind.Flag(attempt.reported);
  bind.Text(attempt.log_tail);
  bind.Text(attempt.cell_file);
  ASSAY_RETURN_IF_ERROR(statement->Run());
  return WriteRecord(attempt);
}

absl::Status SqliteRows::WriteRecord(const AttemptRow& attempt) {
  static const std::string sql = InsertRecordSql();
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement, Cached(sql));
  statement->Bind(1, std::string_view(attempt.id));
  int index = 1;
  for (const FieldInfo* info : Stored()) {
    ++index;
    const Value& value = attempt.record.Get(info->field);
    if (const auto* text = std::get_if<std::string>(&value)) {
      statement->Bind(index, std::string_view(*text));
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      statement->Bind(index, *integer);
    } else if (const auto* number = std::get_if<double>(&value)) {
      statement->Bind(index, *number);
    } else if (const auto* flag = std::get_if<bool>(&value)) {
      statement->Bind(index, int64_t{*flag});
    } else {
      statement->BindNull(index);
    }
  }
  return statement->Run();
}

absl::Status SqliteRows::Write(const NodeRow& node) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement,
                         Cached(Insert("nodes",
                                       {"node", "session_epoch", "machine_id", "boot_id",
                                        "instance", "address", "last_hello"},
                                       "node", OnConflict::kReplace)));
  Binder bind(*statement);
  bind.Text(node.node);
  bind.Integer(node.session_epoch);
  bind.Text(node.machine_id);
  bind.Text(node.boot_id);
  bind.Text(node.instance);
  bind.Text(node.address);
  bind.Integer(node.last_hello_unix_ms);
  return statement->Run();
}

absl::Status SqliteRows::WriteLate(const AttemptRow& attempt) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * run, Cached("SELECT 1 FROM runs WHERE id = ?"));
  run->Bind(1, std::string_view(attempt.run));
  ASSAY_ASSIGN_OR_RETURN(const bool run_known, run->Step());
  run->Reset();
  if (!run_known) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(const bool known, HasAttempt(attempt.id));
  if (!known) return Write(attempt, OnConflict::kReplace);

  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * open,
      Cached("SELECT 1 FROM attempts WHERE id = ? AND counted = 0 AND late = 0 AND "
             "reported = 0"));
  open->Bind(1, std::string_view(attempt.id));
  ASSAY_ASSIGN_OR_RETURN(const bool takes_over, open->Step());
  open->Reset();
  if (!takes_over) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * update,
                         Cached("UPDATE attempts SET outcome = ?, reason = ?, message = ?, "
                                "log_tail = ?, seconds = ?, late = ? WHERE id = ?"));
  Binder bind(*update);
  bind.Text(attempt.outcome);
  bind.Text(attempt.reason);
  bind.Text(attempt.message);
  bind.Text(attempt.log_tail);
  bind.Number(attempt.seconds);
  bind.Flag(attempt.late);
  bind.Text(attempt.id);
  ASSAY_RETURN_IF_ERROR(update->Run());
  return WriteRecord(attempt);
}

absl::StatusOr<bool> SqliteRows::HasAttempt(const std::string& id) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement,
                         Cached("SELECT 1 FROM attempts WHERE id = ?"));
  statement->Bind(1, std::string_view(id));
  const absl::StatusOr<bool> row = statement->Step();
  statement->Reset();
  return row;
}

absl::Status SqliteRows::Reconcile(const std::string& run) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * cells,
      Cached("UPDATE runs SET cells = max(cells, (SELECT count(*) FROM cells WHERE run = ?1)) "
             "WHERE id = ?1"));
  cells->Bind(1, std::string_view(run));
  ASSAY_RETURN_IF_ERROR(cells->Run());
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * counted,
      Cached("UPDATE attempts SET counted = (id = coalesce((SELECT counted_attempt FROM cells "
             "WHERE cells.run = attempts.run AND cells.cell = attempts.cell), '')) "
             "WHERE run = ?1"));
  counted->Bind(1, std::string_view(run));
  return counted->Run();
}

absl::StatusOr<RunRow> ReadRun(const SqliteStatement& row, int at) {
  RunRow run;
  run.id = row.Text(at);
  run.request_id = row.Text(at + 1);
  run.name = row.Text(at + 2);
  run.digest = row.Text(at + 3);
  run.file_name = row.Text(at + 4);
  run.baseline = row.Text(at + 5);
  absl::StatusOr<Selection> select = SelectionFromJson(row.Text(at + 6));
  if (!select.ok()) return Damaged("selection", select.status());
  run.select = *std::move(select);
  run.repeat = static_cast<uint32_t>(row.Integer(at + 7));
  run.specs = static_cast<uint64_t>(row.Integer(at + 8));
  run.seed = static_cast<uint64_t>(row.Integer(at + 9));
  const std::optional<RunState> state = RunStateFromName(row.Text(at + 10));
  if (!state.has_value()) return Unknown("run state", row.Text(at + 10));
  run.state = *state;
  run.message = row.Text(at + 11);
  run.binding_closed = row.Integer(at + 12) != 0;
  run.cells = static_cast<uint64_t>(row.Integer(at + 13));
  run.generation = static_cast<uint32_t>(row.Integer(at + 14));
  run.rerun_request_id = row.Text(at + 15);
  run.submitted_at_unix_ms = row.Integer(at + 16);
  run.started_at_unix_ms = row.Integer(at + 17);
  run.ended_at_unix_ms = row.Integer(at + 18);
  run.yaml = row.Text(at + 19);
  run.submitted_by = row.Text(at + 20);
  return run;
}

absl::StatusOr<CellRow> ReadCell(const SqliteStatement& row, int at) {
  CellRow cell;
  cell.run = row.Text(at);
  cell.cell = static_cast<uint64_t>(row.Integer(at + 1));
  cell.spec_index = static_cast<uint32_t>(row.Integer(at + 2));
  cell.repeat = static_cast<uint32_t>(row.Integer(at + 3));
  cell.target = row.Text(at + 4);
  cell.simulated = row.Integer(at + 5) != 0;
  cell.order = static_cast<uint64_t>(row.Integer(at + 6));
  cell.admitted = row.Integer(at + 7) != 0;
  cell.attempts = static_cast<uint32_t>(row.Integer(at + 8));
  cell.first_attempt = static_cast<uint32_t>(row.Integer(at + 9));
  ASSAY_ASSIGN_OR_RETURN(cell.outcome, ReadOutcome(row, at + 10));
  cell.reason = row.Text(at + 11);
  cell.message = row.Text(at + 12);
  cell.counted_attempt = row.Text(at + 13);
  return cell;
}

absl::StatusOr<AttemptRow> ReadAttempt(const SqliteStatement& row, int at, bool with_text) {
  AttemptRow attempt;
  attempt.id = row.Text(at);
  attempt.run = row.Text(at + 1);
  attempt.cell = static_cast<uint64_t>(row.Integer(at + 2));
  attempt.number = static_cast<uint32_t>(row.Integer(at + 3));
  attempt.state = row.Text(at + 4) == kEnded ? AttemptState::kEnded : AttemptState::kStarted;
  attempt.node = row.Text(at + 5);
  attempt.card = row.Text(at + 6);
  attempt.stack = row.Text(at + 7);
  attempt.runner = row.Text(at + 8);
  absl::StatusOr<std::vector<MemberRow>> members = MembersFromJson(row.Text(at + 9));
  if (!members.ok()) return Damaged("gang", members.status());
  attempt.members = *std::move(members);
  attempt.simulated = row.Integer(at + 10) != 0;
  attempt.seed = static_cast<uint64_t>(row.Integer(at + 11));
  attempt.started_at_unix_ms = row.Integer(at + 12);
  attempt.seconds = row.Number(at + 13);
  ASSAY_ASSIGN_OR_RETURN(attempt.outcome, ReadOutcome(row, at + 14));
  attempt.reason = row.Text(at + 15);
  attempt.message = row.Text(at + 16);
  attempt.counted = row.Integer(at + 17) != 0;
  attempt.late = row.Integer(at + 18) != 0;
  attempt.reported = row.Integer(at + 19) != 0;
  if (with_text) {
    attempt.log_tail = row.Text(at + 20);
    attempt.cell_file = row.Text(at + 21);
  }
  return attempt;
}

const std::string& ResultColumns() {
  static const std::string columns = [] {
    std::string list;
    for (const FieldInfo* info : Stored()) {
      list += fmt::format("{}results.{}", list.empty() ? "" : ", ", QuotedColumn(info->name));
    }
    return list;
  }();
  return columns;
}

Record ReadRecord(const SqliteStatement& row, int at) {
  Record record;
  for (const FieldInfo* info : Stored()) {
    const int column = at++;
    if (row.IsNull(column)) continue;
    // A value that the field's type refuses (a hand edited file) is not known; Set says so.
    absl::Status status;
    switch (info->type) {
      case FieldType::kText:
      case FieldType::kList:
      case FieldType::kCount:
        status = record.Set(info->field, row.Text(column));
        break;
      case FieldType::kInteger:
        status = record.Set(info->field, row.Integer(column));
        break;
      case FieldType::kNumber:
        status = record.Set(info->field, row.Number(column));
        break;
      case FieldType::kFlag:
        status = record.Set(info->field, row.Integer(column) != 0);
        break;
    }
    if (!status.ok()) record.Clear(info->field);
  }
  return record;
}

}  // namespace assay
