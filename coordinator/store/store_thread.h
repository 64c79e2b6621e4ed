// StoreThread: the one thread that writes to a ResultStore, with group commit.
//
// While one commit is being synced, further batches gather; the next commit takes all of them in
// one transaction. The answers come on the store's thread: post them on, do nothing else there.
//
// Thread rule: Start and Stop from the owner; Persist from any thread.
#ifndef ASSAY_COORDINATOR_STORE_STORE_THREAD_H_
#define ASSAY_COORDINATOR_STORE_STORE_THREAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"
#include "coordinator/cell/actions.h"
#include "coordinator/store/result_store.h"

namespace assay {

class StoreThread {
 public:
  struct Callbacks {
    // Commits `done` are durable, in the order of their numbers.
    std::function<void(std::vector<event::CommitDone> done)> on_done;
    // Called once; no commit is done after it.
    std::function<void(std::string message)> on_failed;
  };

  // `store` outlives this.
  StoreThread(ResultStore& store, Callbacks callbacks)
      : store_(store), callbacks_(std::move(callbacks)) {}
  ~StoreThread() { Stop(); }
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;

  void Start();
  // Carries out what was given before, then ends the thread. Safe to call twice.
  void Stop();

  void Persist(assay::Persist persist);

  // No transaction is larger, so that a burst does not hold back its first batch for long.
  static constexpr size_t kMostBatches = 256;

 private:
  void Loop();

  ResultStore& store_;
  const Callbacks callbacks_;
  std::thread thread_;
  Mutex mutex_;
  CondVar wake_;
  std::vector<assay::Persist> pending_ ASSAY_GUARDED_BY(mutex_);
  bool stopping_ ASSAY_GUARDED_BY(mutex_) = false;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_STORE_STORE_THREAD_H_
