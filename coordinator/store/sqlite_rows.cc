#include "coordinator/store/sqlite_rows.h"

#include <fmt/format.h>

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/results/record.h"
#include "common/status/status.h"
#include "coordinator/store/row_columns.h"
#include "coordinator/store/row_json.h"
#include "coordinator/store/schema.h"

namespace assay {
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

// Takes the names alone.
class NameList {
 public:
  template <class T>
  void operator()(const char* name, T&&) {
    names_.emplace_back(name);
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

template <class Row>
const std::vector<std::string>& NamesOf() {
  static const std::vector<std::string> names = [] {
    NameList list;
    Row row;
    EachColumn(row, list);
    return list.names();
  }();
  return names;
}

// "table.a, table.b".
std::string Qualified(const char* table, const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    list += fmt::format("{}{}.{}", list.empty() ? "" : ", ", table, name);
  }
  return list;
}

// Binds values to ?1, ?2, ... in the order of the calls.
class Binder {
 public:
  explicit Binder(SqliteStatement& statement) : statement_(statement) {}
  template <class T>
  void operator()(const char*, const T& value) {
    Put(value);
  }
  void Put(std::string_view value) { statement_.Bind(++index_, value); }
  void Put(const std::string& value) { Put(std::string_view(value)); }
  void Put(const Blob<const std::string>& value) { statement_.BindBlob(++index_, value.bytes); }
  void Put(double value) { statement_.Bind(++index_, value); }
  void Put(std::integral auto value) { statement_.Bind(++index_, static_cast<int64_t>(value)); }
  void Put(const Selection& value) { Put(std::string_view(SelectionJson(value))); }
  void Put(const std::vector<MemberRow>& value) { Put(std::string_view(MembersJson(value))); }
  void Put(const Labels& value) { Put(std::string_view(LabelsJson(value))); }
  void Put(RunState value) { Put(RunStateName(value)); }
  void Put(AttemptState value) {
    Put(std::string_view(value == AttemptState::kEnded ? kEnded : kStarted));
  }
  void Put(const std::optional<Outcome>& outcome) {
    if (outcome.has_value()) {
      Put(OutcomeName(*outcome));
    } else {
      statement_.BindNull(++index_);
    }
  }

 private:
  SqliteStatement& statement_;
  int index_ = 0;
};

// Reads columns `at` to before `end` in the order of the calls; what comes after is left alone.
class ColumnReader {
 public:
  ColumnReader(const SqliteStatement& row, int at, int end) : row_(row), next_(at), end_(end) {}
  template <class T>
  void operator()(const char*, T&& value) {
    const int column = next_++;
    if (column < end_ && status_.ok()) Get(column, value);
  }
  const absl::Status& status() const { return status_; }

 private:
  void Get(int column, std::string& value) { value = row_.Text(column); }
  void Get(int column, Blob<std::string>& value) { value.bytes = row_.Text(column); }
  void Get(int column, double& value) { value = row_.Number(column); }
  void Get(int column, bool& value) { value = row_.Integer(column) != 0; }
  void Get(int column, std::integral auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(row_.Integer(column));
  }
  void Get(int column, Selection& value) {
    absl::StatusOr<Selection> select = SelectionFromJson(row_.Text(column));
    if (!select.ok()) return Fail(Damaged("selection", select.status()));
    value = *std::move(select);
  }
  void Get(int column, std::vector<MemberRow>& value) {
    absl::StatusOr<std::vector<MemberRow>> members = MembersFromJson(row_.Text(column));
    if (!members.ok()) return Fail(Damaged("gang", members.status()));
    value = *std::move(members);
  }
  void Get(int column, Labels& value) {
    absl::StatusOr<Labels> labels = LabelsFromJson(row_.Text(column));
    if (!labels.ok()) return Fail(Damaged("list of labels", labels.status()));
    value = *std::move(labels);
  }
  void Get(int column, RunState& value) {
    const std::optional<RunState> state = RunStateFromName(row_.Text(column));
    if (!state.has_value()) return Fail(Unknown("run state", row_.Text(column)));
    value = *state;
  }
  void Get(int column, AttemptState& value) {
    value = row_.Text(column) == kEnded ? AttemptState::kEnded : AttemptState::kStarted;
  }
  void Get(int column, std::optional<Outcome>& value) {
    if (row_.IsNull(column)) return;
    value = OutcomeFromName(row_.Text(column));
    if (!value.has_value()) Fail(Unknown("outcome", row_.Text(column)));
  }
  void Fail(absl::Status status) { status_ = std::move(status); }

  const SqliteStatement& row_;
  int next_;
  const int end_;
  absl::Status status_;
};

// "INSERT INTO table(columns) VALUES (?,...) ON CONFLICT(key) DO UPDATE SET c=excluded.c, ..."
std::string Insert(const char* table, const std::vector<std::string>& columns, const char* key,
                   OnConflict on_conflict, std::string_view where = "") {
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
                         Cached(Insert("runs", NamesOf<RunRow>(), "id", on_conflict)));
  EachColumn(run, Binder(*statement));
  return statement->Run();
}

absl::Status SqliteRows::Write(const SpecRow& spec, OnConflict on_conflict) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * statement,
      Cached(Insert("specs", {"run", "spec_index", "spec"}, "run, spec_index", on_conflict)));
  Binder bind(*statement);
  bind.Put(spec.run);
  bind.Put(spec.spec.index);
  bind.Put(SpecJson(spec.spec));
  return statement->Run();
}

absl::Status SqliteRows::Write(const CellRow& cell) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * statement,
      Cached(Insert("cells", NamesOf<CellRow>(), "run, cell", OnConflict::kReplace)));
  EachColumn(cell, Binder(*statement));
  return statement->Run();
}

absl::Status SqliteRows::WriteImported(const CellRow& cell) {
  const auto worth = [](const char* row) {
    return fmt::format(
        "CASE {}.outcome WHEN 'ok' THEN 5 WHEN 'mem_limit' THEN 4 WHEN 'unsupported' THEN 3 "
        "WHEN 'cancelled' THEN 1 ELSE iif({}.outcome IS NULL, 0, 2) END",
        row, row);
  };
  // As Batch::Import says. Of the texts the smaller one wins: its side has the other's.
  static const std::string sql = Insert(
      "cells", NamesOf<CellRow>(), "run, cell", OnConflict::kReplace,
      fmt::format(" WHERE ({}, excluded.first_attempt, excluded.attempts, cells.counted_attempt, "
                  "cells.reason, cells.message) > ({}, cells.first_attempt, cells.attempts, "
                  "excluded.counted_attempt, excluded.reason, excluded.message)",
                  worth("excluded"), worth("cells")));
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement, Cached(sql));
  EachColumn(cell, Binder(*statement));
  return statement->Run();
}

absl::Status SqliteRows::Write(const AttemptRow& attempt) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * statement,
      Cached(Insert("attempts", NamesOf<AttemptRow>(), "id", OnConflict::kReplace)));
  EachColumn(attempt, Binder(*statement));
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
                         Cached(Insert("nodes", NamesOf<NodeRow>(), "node", OnConflict::kReplace)));
  EachColumn(node, Binder(*statement));
  return statement->Run();
}

absl::Status SqliteRows::Uncount(const std::string& attempt) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * statement,
                         Cached("UPDATE attempts SET counted = 0 WHERE id = ?"));
  statement->Bind(1, std::string_view(attempt));
  return statement->Run();
}

absl::Status SqliteRows::WriteLate(const AttemptRow& attempt) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * run, Cached("SELECT 1 FROM runs WHERE id = ?"));
  run->Bind(1, std::string_view(attempt.run));
  ASSAY_ASSIGN_OR_RETURN(const bool run_known, run->Step());
  run->Reset();
  if (!run_known) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(const bool known, HasAttempt(attempt.id));
  if (!known) return Write(attempt);
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement * own,
      Cached("SELECT 1 FROM attempts, json_each(attempts.members) AS member WHERE attempts.id = ? "
             "AND json_extract(member.value, '$.node') = ?"));
  own->Bind(1, std::string_view(attempt.id));
  own->Bind(2, std::string_view(attempt.node));
  ASSAY_ASSIGN_OR_RETURN(const bool member, own->Step());
  own->Reset();
  if (!member) return absl::OkStatus();

  ASSAY_ASSIGN_OR_RETURN(SqliteStatement * note,
                         Cached("UPDATE attempts SET reported = 1, message = message || ? "
                                "WHERE id = ? AND counted = 1 AND late = 0 AND reported = 0"));
  const std::string said = LateNote(attempt.outcome.value_or(Outcome::kLost));
  note->Bind(1, std::string_view(said));
  note->Bind(2, std::string_view(attempt.id));
  ASSAY_RETURN_IF_ERROR(note->Run());
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
  bind.Put(attempt.outcome);
  bind.Put(attempt.reason);
  bind.Put(attempt.message);
  bind.Put(attempt.log_tail);
  bind.Put(attempt.seconds);
  bind.Put(attempt.late);
  bind.Put(attempt.id);
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

const std::string& RunColumns() {
  static const std::string columns = Qualified("runs", NamesOf<RunRow>());
  return columns;
}

const std::string& RunColumnsWithoutYaml() {
  static const std::string columns = [] {
    std::vector<std::string> names = NamesOf<RunRow>();
    names.pop_back();
    return Qualified("runs", names);
  }();
  return columns;
}

const std::string& CellColumns() {
  static const std::string columns = Qualified("cells", NamesOf<CellRow>());
  return columns;
}

const std::string& AttemptColumns() {
  static const std::string columns = Qualified("attempts", NamesOf<AttemptRow>());
  return columns;
}

int CellColumnCount() { return static_cast<int>(NamesOf<CellRow>().size()); }
int AttemptColumnCount() { return static_cast<int>(NamesOf<AttemptRow>().size()); }

absl::StatusOr<RunRow> ReadRun(const SqliteStatement& row, bool with_yaml) {
  RunRow run;
  ColumnReader reader(row, 0, static_cast<int>(NamesOf<RunRow>().size()) - (with_yaml ? 0 : 1));
  EachColumn(run, reader);
  if (!reader.status().ok()) return reader.status();
  if (const absl::Status status = CheckSlice(run.slice); !status.ok()) {
    return Damaged("slice", status);
  }
  return run;
}

absl::StatusOr<CellRow> ReadCell(const SqliteStatement& row, int at) {
  CellRow cell;
  ColumnReader reader(row, at, at + CellColumnCount());
  EachColumn(cell, reader);
  if (!reader.status().ok()) return reader.status();
  return cell;
}

absl::StatusOr<AttemptRow> ReadAttempt(const SqliteStatement& row, int at, bool with_text) {
  AttemptRow attempt;
  ColumnReader reader(row, at, at + AttemptColumnCount() - (with_text ? 0 : kAttemptTexts));
  EachColumn(attempt, reader);
  if (!reader.status().ok()) return reader.status();
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
