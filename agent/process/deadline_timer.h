// DeadlineTimer: the one timer of a machine that says when it wants to be asked next.
//
// Owner: whoever drives the machine. Thread rule: the loop's thread.
#ifndef ASSAY_AGENT_PROCESS_DEADLINE_TIMER_H_
#define ASSAY_AGENT_PROCESS_DEADLINE_TIMER_H_

#include <functional>
#include <optional>
#include <utility>

#include "agent/process/event_loop.h"
#include "common/clock/clock.h"

namespace assay {

class DeadlineTimer {
 public:
  // `due` is called once for each time that was set and came. `loop` outlives this.
  DeadlineTimer(EventLoop& loop, std::function<void()> due) : loop_(loop), due_(std::move(due)) {}
  ~DeadlineTimer() { Set(std::nullopt); }
  DeadlineTimer(const DeadlineTimer&) = delete;
  DeadlineTimer& operator=(const DeadlineTimer&) = delete;

  // In place of the time that was set before; nullopt: none.
  void Set(std::optional<BootTime> when) {
    if (when == when_) return;
    if (when_) loop_.Cancel(timer_);
    when_ = when;
    if (!when) return;
    timer_ = loop_.RunAt(*when, [this] {
      when_.reset();
      due_();
    });
  }

 private:
  EventLoop& loop_;
  const std::function<void()> due_;
  std::optional<BootTime> when_;  // set and not come
  EventLoop::TimerId timer_{};
};

}  // namespace assay

#endif  // ASSAY_AGENT_PROCESS_DEADLINE_TIMER_H_
