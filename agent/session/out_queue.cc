#include "agent/session/out_queue.h"

#include <utility>

namespace assay {
namespace {

// Messages with the same key replace each other; an empty key never does.
std::string KeyOf(const AgentMessage& message) {
  if (std::holds_alternative<Heartbeat>(message)) return "heartbeat";
  if (const auto* progress = std::get_if<GangProgress>(&message)) {
    return "progress/" + progress->attempt;
  }
  if (const auto* report = std::get_if<SpooledReport>(&message)) {
    return "report/" + report->attempt;
  }
  return "";
}

}  // namespace

void OutQueue::Push(AgentMessage message) {
  if (const std::string key = KeyOf(message); !key.empty()) {
    for (AgentMessage& waiting : waiting_) {
      if (KeyOf(waiting) != key) continue;
      waiting = std::move(message);
      return;
    }
  }
  if (std::holds_alternative<Hello>(message)) {
    waiting_.push_front(std::move(message));
  } else {
    waiting_.push_back(std::move(message));
  }
}

std::optional<AgentMessage> OutQueue::Pop() {
  if (waiting_.empty()) return std::nullopt;
  AgentMessage message = std::move(waiting_.front());
  waiting_.pop_front();
  return message;
}

}  // namespace assay
