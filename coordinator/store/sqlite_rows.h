// SqliteRows: each kind of row to and from the columns of its table. Private to this folder.
//
// Owner: a store or a reader, over one database. Statements are prepared at first use and kept.
// Thread rule: as the database.
#ifndef ASSAY_COORDINATOR_STORE_SQLITE_ROWS_H_
#define ASSAY_COORDINATOR_STORE_SQLITE_ROWS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/cell/rows.h"
#include "coordinator/store/sqlite.h"

namespace assay {

// What is done where the primary key exists already.
enum class OnConflict { kReplace, kKeep };

class SqliteRows {
 public:
  explicit SqliteRows(SqliteDatabase& database) : database_(database) {}

  absl::Status Write(const RunRow& run, OnConflict on_conflict);
  absl::Status Write(const SpecRow& spec, OnConflict on_conflict);
  // These replace what is stored.
  absl::Status Write(const CellRow& cell);
  absl::Status Write(const AttemptRow& attempt);  // with its record, in `results`
  absl::Status Write(const NodeRow& node);
  // The attempt counts no longer; one that is not stored is none.
  absl::Status Uncount(const std::string& attempt);
  // As Batch::late_attempts says.
  absl::Status WriteLate(const AttemptRow& attempt);
  // Replaces a stored cell that has no outcome or was cancelled, else keeps it.
  absl::Status WriteImported(const CellRow& cell);
  // True where an attempt of that id is stored.
  absl::StatusOr<bool> HasAttempt(const std::string& id);
  // After an import: cells of the run counted, and one counted attempt a cell.
  absl::Status Reconcile(const std::string& run);

  // A statement that is reset and ready to be bound.
  absl::StatusOr<SqliteStatement*> Cached(const std::string& sql);

 private:
  absl::Status WriteRecord(const AttemptRow& attempt);

  SqliteDatabase& database_;
  std::map<std::string, SqliteStatement> statements_;
};

// Column lists for SELECT and the reading of one row that starts at column `at`. DataLoss where a
// value cannot be understood.
const std::string& RunColumns();  // each as runs.NAME
// The matrix text may be a megabyte.
const std::string& RunColumnsWithoutYaml();
absl::StatusOr<RunRow> ReadRun(const SqliteStatement& row, bool with_yaml = true);

const std::string& CellColumns();  // each as cells.NAME
int CellColumnCount();
absl::StatusOr<CellRow> ReadCell(const SqliteStatement& row, int at);

const std::string& AttemptColumns();  // each as attempts.NAME
int AttemptColumnCount();
// `with_text`: log_tail and cell_file too.
absl::StatusOr<AttemptRow> ReadAttempt(const SqliteStatement& row, int at, bool with_text);

// results.NAME for every field that is stored.
const std::string& ResultColumns();
Record ReadRecord(const SqliteStatement& row, int at);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_STORE_SQLITE_ROWS_H_
