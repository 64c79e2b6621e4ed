// Mutex, MutexLock and CondVar: the std ones behind clang's thread-safety annotations.
//
// std::mutex and not absl::Mutex, since Debian's abseil is not built for ThreadSanitizer and
// absl::Mutex then reports races that are none.
#ifndef ASSAY_COMMON_SYNC_MUTEX_H_
#define ASSAY_COMMON_SYNC_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define ASSAY_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define ASSAY_THREAD_ANNOTATION(x)
#endif

#define ASSAY_CAPABILITY(x) ASSAY_THREAD_ANNOTATION(capability(x))
#define ASSAY_SCOPED_CAPABILITY ASSAY_THREAD_ANNOTATION(scoped_lockable)
#define ASSAY_GUARDED_BY(x) ASSAY_THREAD_ANNOTATION(guarded_by(x))
#define ASSAY_REQUIRES(...) ASSAY_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ASSAY_EXCLUDES(...) ASSAY_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ASSAY_ACQUIRE(...) ASSAY_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define ASSAY_RELEASE(...) ASSAY_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define ASSAY_NO_THREAD_SAFETY_ANALYSIS ASSAY_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace assay {

class ASSAY_CAPABILITY("mutex") Mutex {
 public:
  void Lock() ASSAY_ACQUIRE() { mutex_.lock(); }
  void Unlock() ASSAY_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ASSAY_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ASSAY_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() ASSAY_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits release the mutex and hold it again on return. Spurious wake-ups happen: wait in a loop.
class CondVar {
 public:
  void Wait(Mutex& mutex) ASSAY_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False when `timeout` passed first.
  template <class Rep, class Period>
  bool WaitFor(Mutex& mutex, std::chrono::duration<Rep, Period> timeout) ASSAY_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool notified = condition_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace assay

#endif  // ASSAY_COMMON_SYNC_MUTEX_H_
