// StateLoop: the one thread that owns CoordinatorState. Takes events, steps, carries out the
// actions.
//
// It sleeps until the next event or deadline; an idle coordinator has neither. Thread rule: every
// method from any thread; every callback is called on the state thread and must only copy and post.
#ifndef ASSAY_COORDINATOR_STATE_LOOP_H_
#define ASSAY_COORDINATOR_STATE_LOOP_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "common/clock/clock.h"
#include "common/sync/mutex.h"
#include "coordinator/scheduler/coordinator_state.h"

namespace assay {

// Receives the views of one run. Ready is asked before a view is made: what a slow watcher cannot
// take yet comes, newest, when it can.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  virtual bool Ready() = 0;
  // Nobody reads it any more: it is let go, however long the run goes on.
  virtual bool Gone() = 0;
  virtual void Update(const RunView& view) = 0;
  // The run is not in memory (ended long ago, or unknown), or the coordinator shuts down.
  virtual void End(const absl::Status& status) = 0;
};

class StateLoop {
 public:
  struct Shell {
    std::function<void(Persist)> persist;
    std::function<void(SendToAgent)> send;
    std::function<void(SessionHandle)> close;
    std::function<void(std::string)> halt;  // once
  };
  using OnReply = std::function<void(const Reply&)>;

  // `clock` and `state` outlive this; `state` is loaded already and touched by nobody else.
  StateLoop(CoordinatorState& state, const Clock& clock) : state_(state), clock_(clock) {}
  ~StateLoop() { Stop(); }
  StateLoop(const StateLoop&) = delete;
  StateLoop& operator=(const StateLoop&) = delete;

  void Start(Shell shell);
  // Ends the thread; every open question and watch is answered with Unavailable. Safe to call
  // twice.
  void Stop();

  // `after`, where given, is called when the event was handled: the poster's leave to read on.
  void Post(Event event, std::function<void()> after = nullptr);
  // Posts the event that `make` builds for a fresh token and calls `on_reply` exactly once.
  void Call(std::function<Event(ReplyToken)> make, const OnReply& on_reply);
  // Runs `question` on the state thread; after Stop it is not run and false is returned.
  bool Ask(std::function<void(const CoordinatorState&)> question);
  // At most four views a second; the first at once. Ends with the final view.
  void Watch(const std::string& run, const std::shared_ptr<WatchSink>& sink);

  bool HasUnfinishedRuns() const { return unfinished_; }

 private:
  struct Watcher {
    std::string run;
    uint64_t since = UINT64_MAX;
    BootTime next;  // not before
    bool dirty = true;
    std::optional<uint64_t> over_at;  // last commit that had been issued when the run was over
    std::shared_ptr<WatchSink> sink;
  };
  using Task = std::function<void()>;

  bool Enqueue(Task task);
  void Loop();
  void Handle(const Event& event);
  void CarryOut(Actions actions);
  void ServeWatchers();
  // Serves one watcher; false when it is done with.
  bool Serve(Watcher& watcher, BootTime now);
  std::optional<BootTime> NextDeadline() const;
  void AnswerAllAtEnd();

  CoordinatorState& state_;
  const Clock& clock_;
  Shell shell_;
  std::thread thread_;

  Mutex mutex_;
  CondVar wake_;
  std::deque<Task> tasks_ ASSAY_GUARDED_BY(mutex_);
  bool stopping_ ASSAY_GUARDED_BY(mutex_) = false;
  bool ended_ ASSAY_GUARDED_BY(mutex_) = false;
  std::atomic<bool> unfinished_{false};
  std::atomic<uint64_t> last_token_{0};

  // Of the state thread alone.
  std::map<ReplyToken, OnReply> questions_;
  std::deque<Watcher> watchers_;
  std::set<SessionHandle> sessions_;
  BootTime next_tick_;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_STATE_LOOP_H_
