#include "coordinator/store/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <utility>

#include "common/status/status.h"

namespace assay {
namespace {

absl::Status ToStatus(int code, sqlite3* database, std::string_view what) {
  const std::string message = fmt::format(
      "{}: {}", what, database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code));
  switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
      return absl::OkStatus();
    case SQLITE_IOERR:
      // The index beside a write-ahead log is made before a row can be read; on a full disk that
      // fails with no other word.
      if (code == SQLITE_IOERR_SHMSIZE) {
        return absl::ResourceExhaustedError(message + "; is the disk full? free some space");
      }
      return absl::InternalError(message);
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return absl::ResourceExhaustedError(message);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return absl::PermissionDeniedError(message);
    case SQLITE_ERROR:  // a table or column that our SQL names is not there
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          message + "; move the file away to begin afresh, and merge exported runs back in");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace

SqliteStatement::SqliteStatement(SqliteStatement&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)), bind_error_(other.bind_error_) {}

SqliteStatement& SqliteStatement::operator=(SqliteStatement&& other) noexcept {
  std::swap(statement_, other.statement_);
  std::swap(bind_error_, other.bind_error_);
  return *this;
}

SqliteStatement::~SqliteStatement() { sqlite3_finalize(statement_); }

void SqliteStatement::Bind(int index, int64_t value) {
  if (const int code = sqlite3_bind_int64(statement_, index, value)) bind_error_ = code;
}

void SqliteStatement::Bind(int index, double value) {
  if (const int code = sqlite3_bind_double(statement_, index, value)) bind_error_ = code;
}

void SqliteStatement::Bind(int index, std::string_view value) {
  const int code = sqlite3_bind_text64(statement_, index, value.data() ? value.data() : "",
                                       value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) bind_error_ = code;
}

void SqliteStatement::BindBlob(int index, std::string_view value) {
  const int code = sqlite3_bind_blob64(statement_, index, value.data() ? value.data() : "",
                                       value.size(), SQLITE_TRANSIENT);
  if (code != SQLITE_OK) bind_error_ = code;
}

void SqliteStatement::BindNull(int index) {
  if (const int code = sqlite3_bind_null(statement_, index)) bind_error_ = code;
}

absl::StatusOr<bool> SqliteStatement::Step() {
  if (bind_error_ != SQLITE_OK) {
    return ToStatus(bind_error_, nullptr, "cannot bind a value of the store");
  }
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return ToStatus(code, sqlite3_db_handle(statement_), "the store cannot be read or written");
}

absl::Status SqliteStatement::Run() {
  const absl::StatusOr<bool> row = Step();
  Reset();
  return row.status();
}

void SqliteStatement::Reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  bind_error_ = SQLITE_OK;
}

bool SqliteStatement::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

int64_t SqliteStatement::Integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double SqliteStatement::Number(int column) const {
  return sqlite3_column_double(statement_, column);
}

std::string SqliteStatement::Text(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (data == nullptr || size <= 0) return {};
  return std::string(static_cast<const char*>(data), static_cast<size_t>(size));
}

absl::StatusOr<SqliteDatabase> SqliteDatabase::Open(const std::string& path, SqliteUse use) {
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  SqliteDatabase database(raw);
  if (code != SQLITE_OK) return ToStatus(code, raw, fmt::format("cannot open {}", path));
  sqlite3_extended_result_codes(raw, 1);
  // The state directory's lock makes us the only owner; a reader by hand is waited for.
  sqlite3_busy_timeout(raw, 5000);
  if (use == SqliteUse::kAlone) {
    if (absl::Status alone = database.Execute("PRAGMA locking_mode=EXCLUSIVE"); !alone.ok()) {
      return alone;
    }
  }
  // temp_store in memory: a full or read-only /tmp must not fail a query.
  const absl::Status status = database.Execute(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; "
      "PRAGMA temp_store=MEMORY; PRAGMA journal_size_limit=67108864;");
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::string_view(fmt::format("{}: {}", path, Message(status))));
  }
  return database;
}

SqliteDatabase::SqliteDatabase(SqliteDatabase&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

SqliteDatabase& SqliteDatabase::operator=(SqliteDatabase&& other) noexcept {
  std::swap(database_, other.database_);
  return *this;
}

// close_v2: statements that outlive it keep it until they go.
SqliteDatabase::~SqliteDatabase() { sqlite3_close_v2(database_); }

absl::Status SqliteDatabase::Execute(const std::string& sql) {
  const int code = sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
  return ToStatus(code, database_, "the store cannot be read or written");
}

absl::StatusOr<SqliteStatement> SqliteDatabase::Prepare(const std::string& sql) {
  SqliteStatement statement;
  const int code = sqlite3_prepare_v2(database_, sql.c_str(), static_cast<int>(sql.size()),
                                      &statement.statement_, nullptr);
  if (code != SQLITE_OK) {
    return ToStatus(code, database_, fmt::format("the store refuses '{:.200}'", sql));
  }
  return statement;
}

absl::StatusOr<std::optional<int64_t>> SqliteDatabase::QueryInteger(const std::string& sql) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
  ASSAY_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row || statement.IsNull(0)) return std::nullopt;
  return statement.Integer(0);
}

bool SqliteDatabase::InAutocommit() const { return sqlite3_get_autocommit(database_) != 0; }

}  // namespace assay
