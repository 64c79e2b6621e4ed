// SqliteStore and SqliteReader: ResultStore and ResultReader over one SQLite file (DIR/results.db).
//
// WAL with synchronous=FULL: a commit that returned is on the disk. Thread rule: one thread each;
// the two have a connection of their own and may be used at the same time.
#ifndef ASSAY_COORDINATOR_STORE_SQLITE_STORE_H_
#define ASSAY_COORDINATOR_STORE_SQLITE_STORE_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "coordinator/store/result_store.h"
#include "coordinator/store/sqlite.h"
#include "coordinator/store/sqlite_rows.h"

namespace assay {

class SqliteStore final : public ResultStore {
 public:
  // Opens or creates the file and brings it to the current schema. The error names the file.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& path,
                                                           SqliteUse use = SqliteUse::kShared);

  absl::StatusOr<StateSnapshot> Load() override;
  absl::StatusOr<std::vector<ImportCounts>> Commit(std::span<const Batch> batches) override;

 private:
  explicit SqliteStore(SqliteDatabase database)
      : database_(std::move(database)), rows_(database_) {}

  absl::Status Write(const Batch& batch, ImportCounts& counts);
  absl::Status WriteImport(const Batch::Import& import, ImportCounts& counts);

  SqliteDatabase database_;
  SqliteRows rows_;
  absl::Status failed_;  // not OK after a failed Commit: the answer to all further ones
};

class SqliteReader final : public ResultReader {
 public:
  // The file must exist with the current schema: open the store first.
  static absl::StatusOr<std::unique_ptr<SqliteReader>> Open(const std::string& path,
                                                            SqliteUse use = SqliteUse::kShared);

  absl::StatusOr<std::vector<RunOverview>> ListRuns() override;
  absl::StatusOr<std::string> ResolveRun(const std::string& text) override;
  absl::StatusOr<RunRow> GetRun(const std::string& run) override;
  absl::StatusOr<std::vector<Spec>> ListSpecs(const std::string& run) override;
  absl::StatusOr<RunSnapshot> LoadRun(const std::string& run) override;
  absl::StatusOr<std::vector<CellResult>> ListRepeats(const CellRow& cell) override;
  absl::StatusOr<std::vector<CellResult>> ListCells(const std::string& run, uint64_t after,
                                                    uint32_t limit) override;
  absl::StatusOr<CellResult> GetCell(const std::string& run, uint64_t cell) override;
  absl::StatusOr<std::vector<AttemptRow>> ListAttempts(const std::string& run,
                                                       uint64_t cell) override;
  absl::StatusOr<std::vector<SpecResult>> ListPeaks() override;

 private:
  absl::StatusOr<std::vector<uint32_t>> SlicesOf(const RunRow& run);

  explicit SqliteReader(SqliteDatabase database)
      : database_(std::move(database)), rows_(database_) {}

  SqliteDatabase database_;
  SqliteRows rows_;
};

// Specs of a run by index; empty where there is no such run.
absl::StatusOr<std::vector<Spec>> ReadSpecs(SqliteRows& rows, const std::string& run);

// A run with its specs, cells and attempts (without records and texts). NotFound names the run.
absl::StatusOr<RunSnapshot> LoadRunSnapshot(SqliteRows& rows, const std::string& run);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_STORE_SQLITE_STORE_H_
