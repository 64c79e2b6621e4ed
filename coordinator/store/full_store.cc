#include "coordinator/store/full_store.h"

#include "common/status/status.h"
#include "coordinator/store/sqlite_store.h"

namespace assay {

absl::StatusOr<std::unique_ptr<FullStore>> FullStore::Open(const std::string& path,
                                                           absl::Status why) {
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteStore> store,
                         SqliteStore::Open(path, SqliteUse::kAlone));
  ASSAY_ASSIGN_OR_RETURN(StateSnapshot snapshot, store->Load());
  return std::unique_ptr<FullStore>(new FullStore(std::move(snapshot), std::move(why)));
}

absl::StatusOr<OpenedStore> OpenStore(const std::string& path) {
  OpenedStore opened;
  absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open(path);
  if (store.ok()) {
    opened.store = *std::move(store);
    ASSAY_ASSIGN_OR_RETURN(opened.reader, SqliteReader::Open(path));
    return opened;
  }
  if (!absl::IsResourceExhausted(store.status())) return store.status();
  absl::StatusOr<std::unique_ptr<FullStore>> full = FullStore::Open(path, store.status());
  if (!full.ok()) return store.status();
  opened.full = store.status();
  opened.store = *std::move(full);
  ASSAY_ASSIGN_OR_RETURN(opened.reader, SqliteReader::Open(path, SqliteUse::kAlone));
  return opened;
}

}  // namespace assay
