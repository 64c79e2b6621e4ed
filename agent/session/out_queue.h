// OutQueue: messages that wait for the one write in flight. State replaces older state of the same
// thing, history keeps its order.
#ifndef ASSAY_AGENT_SESSION_OUT_QUEUE_H_
#define ASSAY_AGENT_SESSION_OUT_QUEUE_H_

#include <deque>
#include <optional>
#include <string>

#include "agent/session/messages.h"

namespace assay {

// Thread rule: one owner.
class OutQueue {
 public:
  // A newer progress of an attempt, a newer heartbeat and a repeated report take the place of the
  // older one that still waits. Hello goes first.
  void Push(AgentMessage message);
  std::optional<AgentMessage> Pop();
  void Clear() { waiting_.clear(); }
  bool empty() const { return waiting_.empty(); }
  size_t size() const { return waiting_.size(); }

 private:
  std::deque<AgentMessage> waiting_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_SESSION_OUT_QUEUE_H_
