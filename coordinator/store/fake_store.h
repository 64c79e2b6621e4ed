// FakeStore: ResultStore and ResultReader in memory, for tests of what stands on a store.
//
// Held to the same conformance suite as SqliteStore. Thread rule: any thread.
#ifndef ASSAY_COORDINATOR_STORE_FAKE_STORE_H_
#define ASSAY_COORDINATOR_STORE_FAKE_STORE_H_

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/sync/mutex.h"
#include "coordinator/store/result_store.h"

namespace assay {

class FakeStore final : public ResultStore, public ResultReader {
 public:
  // From now on every Commit fails with `status`, as on a full disk.
  void FailCommits(absl::Status status);
  // Commits that were carried out, each of one or several batches.
  int commits() const;

  absl::StatusOr<StateSnapshot> Load() override;
  absl::StatusOr<std::vector<ImportCounts>> Commit(std::span<const Batch> batches) override;

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
  struct Tables {
    std::map<std::string, RunRow> runs;
    std::map<std::pair<std::string, uint32_t>, Spec> specs;
    std::map<std::pair<std::string, uint64_t>, CellRow> cells;
    std::map<std::string, AttemptRow> attempts;
    std::map<std::string, NodeRow> nodes;
  };
  static absl::Status Apply(const Batch& batch, Tables& tables, ImportCounts& counts);
  static absl::Status Import(const Batch::Import& import, Tables& tables, ImportCounts& counts);
  CellResult ResultOf(const CellRow& cell) const ASSAY_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Tables tables_ ASSAY_GUARDED_BY(mutex_);
  absl::Status failure_ ASSAY_GUARDED_BY(mutex_);
  int commits_ ASSAY_GUARDED_BY(mutex_) = 0;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_STORE_FAKE_STORE_H_
