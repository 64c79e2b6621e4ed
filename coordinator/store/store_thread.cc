#include "coordinator/store/store_thread.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/status/status.h"

namespace assay {

void StoreThread::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void StoreThread::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void StoreThread::Persist(assay::Persist persist) {
  {
    MutexLock lock(mutex_);
    pending_.push_back(std::move(persist));
  }
  wake_.NotifyOne();
}

void StoreThread::Loop() {
  while (true) {
    std::vector<assay::Persist> group;
    {
      MutexLock lock(mutex_);
      while (pending_.empty() && !stopping_) wake_.Wait(mutex_);
      if (pending_.empty()) return;
      const size_t count = std::min(pending_.size(), kMostBatches);
      const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(count);
      std::move(pending_.begin(), end, std::back_inserter(group));
      pending_.erase(pending_.begin(), end);
    }
    std::vector<Batch> batches;
    std::vector<event::CommitDone> done;
    for (assay::Persist& persist : group) {
      batches.push_back(std::move(persist.batch));
      done.push_back({persist.n, 0, 0});
    }
    const absl::StatusOr<std::vector<ImportCounts>> counts = store_.Commit(batches);
    if (!counts.ok()) {
      callbacks_.on_failed(Message(counts.status()));
      return;
    }
    for (size_t i = 0; i < done.size(); ++i) {
      done[i].attempts_new = (*counts)[i].attempts_new;
      done[i].attempts_known = (*counts)[i].attempts_known;
    }
    callbacks_.on_done(std::move(done));
  }
}

}  // namespace assay
