// WorkThread: one thread that carries out tasks in order; where the API reads the store and parses
// what users sent, away from gRPC's two callback threads.
//
// Thread rule: Post from any thread; Start and Stop from the owner.
#ifndef ASSAY_COORDINATOR_API_WORK_THREAD_H_
#define ASSAY_COORDINATOR_API_WORK_THREAD_H_

#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "common/sync/mutex.h"

namespace assay {

class WorkThread {
 public:
  WorkThread() = default;
  ~WorkThread() { Stop(); }
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  void Start() {
    thread_ = std::thread([this] { Loop(); });
  }
  // Carries out what was posted before. Safe to call twice.
  void Stop() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    wake_.NotifyAll();
    if (thread_.joinable()) thread_.join();
  }
  // After Stop the task is carried out at once by the caller, so that nobody waits for ever.
  void Post(std::function<void()> task) {
    {
      MutexLock lock(mutex_);
      if (!ended_) {
        tasks_.push_back(std::move(task));
        wake_.NotifyOne();
        return;
      }
    }
    task();
  }

 private:
  void Loop() {
    while (true) {
      std::function<void()> task;
      {
        MutexLock lock(mutex_);
        while (tasks_.empty() && !stopping_) wake_.Wait(mutex_);
        if (tasks_.empty()) {
          ended_ = true;
          return;
        }
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  std::thread thread_;
  Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> tasks_ ASSAY_GUARDED_BY(mutex_);
  bool stopping_ ASSAY_GUARDED_BY(mutex_) = false;
  bool ended_ ASSAY_GUARDED_BY(mutex_) = false;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_API_WORK_THREAD_H_
