// EventLoop: epoll, timers on the boot clock and a mailbox for other threads. Nothing is polled: a
// loop without work sleeps in the kernel.
//
// Owner: main, or a test. Thread rule: Run and everything else belong to one thread, but Post and
// Stop, which any thread may call. A callback may watch, unwatch, start and cancel as it likes.
#ifndef ASSAY_AGENT_PROCESS_EVENT_LOOP_H_
#define ASSAY_AGENT_PROCESS_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/process/unique_fd.h"
#include "common/clock/clock.h"
#include "common/sync/mutex.h"

namespace assay {

class EventLoop {
 public:
  using FdCallback = std::function<void(uint32_t epoll_events)>;
  using TimerId = std::pair<BootTime, uint64_t>;

  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Level-triggered. The descriptor stays the caller's, who unwatches it before closing it.
  absl::Status Watch(int fd, uint32_t epoll_events, FdCallback callback);
  void Unwatch(int fd);

  TimerId RunAt(BootTime when, std::function<void()> callback);
  void Cancel(const TimerId& timer);  // of a timer that ran already: nothing

  void Post(std::function<void()> callback);  // any thread
  void Stop();                                // any thread

  // Until Stop. May be called again.
  void Run();
  // Until `done` holds, looked at after each round of callbacks, or `deadline` passes. False when
  // the deadline came first. For shutdown and tests.
  bool RunUntil(const std::function<bool()>& done, BootTime deadline);

 private:
  EventLoop(UniqueFd epoll, UniqueFd timer, UniqueFd mailbox);
  void RunOnce();
  void RunTimers();
  void RunMailbox();
  void ArmTimer();

  UniqueFd epoll_;
  UniqueFd timer_;
  UniqueFd mailbox_;
  uint64_t next_id_ = 1;
  // By id and not by descriptor: an event of a descriptor closed in the same round must not reach
  // the one that was opened with its number.
  std::unordered_map<uint64_t, std::pair<int, std::shared_ptr<FdCallback>>> watched_;
  std::unordered_map<int, uint64_t> id_of_fd_;
  std::map<TimerId, std::function<void()>> timers_;
  std::optional<BootTime> armed_for_;

  Mutex mutex_;
  std::vector<std::function<void()>> posted_ ASSAY_GUARDED_BY(mutex_);
  bool stop_ ASSAY_GUARDED_BY(mutex_) = false;
};

}  // namespace assay

#endif  // ASSAY_AGENT_PROCESS_EVENT_LOOP_H_
