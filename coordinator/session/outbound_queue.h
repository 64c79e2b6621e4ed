// OutboundQueue: what waits to be written to one agent. Commands are never dropped; state
// (heartbeat acknowledgements) is replaced by its newest. A peer that does not read fills it: then
// its session has to end, since leaving out a command would be worse.
//
// Thread rule: the owner's lock.
#ifndef ASSAY_COORDINATOR_SESSION_OUTBOUND_QUEUE_H_
#define ASSAY_COORDINATOR_SESSION_OUTBOUND_QUEUE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <variant>

#include "coordinator/cell/actions.h"

namespace assay {

class OutboundQueue {
 public:
  // A node has at most some hundred gangs; each has four commands.
  static constexpr size_t kMostMessages = 4096;

  // False when the queue is full.
  [[nodiscard]] bool Push(CoordinatorMessage message) {
    if (std::holds_alternative<message::HeartbeatAck>(message)) {
      for (CoordinatorMessage& waiting : queue_) {
        if (!std::holds_alternative<message::HeartbeatAck>(waiting)) continue;
        waiting = std::move(message);
        return true;
      }
    }
    if (queue_.size() == kMostMessages) return false;
    queue_.push_back(std::move(message));
    return true;
  }

  std::optional<CoordinatorMessage> Pop() {
    if (queue_.empty()) return std::nullopt;
    CoordinatorMessage message = std::move(queue_.front());
    queue_.pop_front();
    return message;
  }

  bool empty() const { return queue_.empty(); }

 private:
  std::deque<CoordinatorMessage> queue_;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_SESSION_OUTBOUND_QUEUE_H_
