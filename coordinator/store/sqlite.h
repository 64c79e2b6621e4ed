// SqliteDatabase and SqliteStatement: SQLite's C interface with ownership and Status, nothing more.
//
// Thread rule: one thread owns a database and its statements (SQLite is opened without its mutex).
// Errors: ResourceExhausted (disk full), PermissionDenied (read-only folder or file), DataLoss
// (corrupt, not a database, tables that are not ours), Unavailable (busy: another process holds
// it), Internal else; the message is "<what>: <SQLite's text>".
#ifndef ASSAY_COORDINATOR_STORE_SQLITE_H_
#define ASSAY_COORDINATOR_STORE_SQLITE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace assay {

// A prepared statement. Bind counts from 1, columns from 0, as SQLite does.
class SqliteStatement {
 public:
  SqliteStatement() = default;
  SqliteStatement(SqliteStatement&& other) noexcept;
  SqliteStatement& operator=(SqliteStatement&& other) noexcept;
  ~SqliteStatement();

  void Bind(int index, int64_t value);
  void Bind(int index, double value);
  // Copies. Text may hold a zero byte; SQLite keeps it.
  void Bind(int index, std::string_view value);
  void BindBlob(int index, std::string_view value);
  void BindNull(int index);

  // True with a row, false at the end. An error of a Bind before it is reported here.
  absl::StatusOr<bool> Step();
  // Step() of a statement without rows, then Reset.
  absl::Status Run();
  // For the next use; bindings are cleared.
  void Reset();

  bool IsNull(int column) const;
  int64_t Integer(int column) const;
  double Number(int column) const;
  std::string Text(int column) const;  // of text or blob; "" for NULL

 private:
  friend class SqliteDatabase;
  sqlite3_stmt* statement_ = nullptr;
  int bind_error_ = 0;
};

// Resets a statement at the end of its use, however that ends: one that stands on a row holds its
// connection to the rows of that moment, and later reads would not see what was committed since.
class StatementUse {
 public:
  explicit StatementUse(SqliteStatement* statement) : statement_(statement) {}
  ~StatementUse() { statement_->Reset(); }
  StatementUse(const StatementUse&) = delete;
  StatementUse& operator=(const StatementUse&) = delete;

 private:
  SqliteStatement* const statement_;
};

enum class SqliteUse {
  kShared,  // several connections, with an index of the log in a file beside it
  kAlone,   // one connection, with the index in its memory: needs no room on the disk
};

class SqliteDatabase {
 public:
  // Opens or creates `path` with WAL, synchronous=FULL and foreign keys on. Two connections of one
  // process may hold it at a time.
  static absl::StatusOr<SqliteDatabase> Open(const std::string& path,
                                             SqliteUse use = SqliteUse::kShared);

  SqliteDatabase(SqliteDatabase&& other) noexcept;
  SqliteDatabase& operator=(SqliteDatabase&& other) noexcept;
  ~SqliteDatabase();

  // One or several statements without results.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<SqliteStatement> Prepare(const std::string& sql);
  // First column of the first row as integer; nullopt without a row.
  absl::StatusOr<std::optional<int64_t>> QueryInteger(const std::string& sql);
  // False inside a transaction.
  bool InAutocommit() const;

 private:
  explicit SqliteDatabase(sqlite3* database) : database_(database) {}
  sqlite3* database_ = nullptr;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_STORE_SQLITE_H_
