// FullStore: a store on a disk without room for the index that SQLite keeps beside its log, without
// which two connections cannot read. What was stored can still be read, over one connection that
// keeps the index in memory; no commit succeeds.
//
// Thread rule: as ResultStore.
#ifndef ASSAY_COORDINATOR_STORE_FULL_STORE_H_
#define ASSAY_COORDINATOR_STORE_FULL_STORE_H_

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/store/result_store.h"

namespace assay {

class FullStore final : public ResultStore {
 public:
  // `why` is what SqliteStore::Open said, and the answer to each Commit. No other connection to the
  // file may be open meanwhile; none is kept. The error of what cannot be read either.
  static absl::StatusOr<std::unique_ptr<FullStore>> Open(const std::string& path, absl::Status why);

  absl::StatusOr<StateSnapshot> Load() override { return snapshot_; }
  absl::StatusOr<std::vector<ImportCounts>> Commit(std::span<const Batch>) override { return why_; }

 private:
  FullStore(StateSnapshot snapshot, absl::Status why)
      : snapshot_(std::move(snapshot)), why_(std::move(why)) {}

  StateSnapshot snapshot_;
  absl::Status why_;
};

// The store and the reader of the file, and why the store is a FullStore where it is one.
struct OpenedStore {
  std::unique_ptr<ResultStore> store;
  std::unique_ptr<ResultReader> reader;
  absl::Status full;
};
absl::StatusOr<OpenedStore> OpenStore(const std::string& path);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_STORE_FULL_STORE_H_
