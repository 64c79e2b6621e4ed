#include "agent/session/session_machine.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

// A peer's seconds within what makes sense.
std::chrono::nanoseconds Clamped(double seconds, double least, double most, double fallback) {
  if (!std::isfinite(seconds) || seconds <= 0) seconds = fallback;
  return std::chrono::nanoseconds(static_cast<int64_t>(std::clamp(seconds, least, most) * 1e9));
}

// More unacknowledged heartbeats than this are never waited for.
constexpr size_t kMostUnacknowledged = 16;

}  // namespace

std::vector<SessionAction> SessionMachine::Start(BootTime now) {
  next_dial_ = now;
  state_ = State::kWaiting;
  return OnTick(now);
}

void SessionMachine::WaitBeforeDial(BootTime now) {
  state_ = State::kWaiting;
  sent_.clear();
  // Never longer than a heartbeat, however short: an agent that holds an attempt has to be back
  // before its lease ends.
  next_dial_ = now + std::min<std::chrono::nanoseconds>(backoff_.Next(), Jittered(heartbeat_));
}

// Up to a fifth less, so that a thousand agents that came up together do not stay together.
std::chrono::nanoseconds SessionMachine::Jittered(std::chrono::nanoseconds time) {
  const double factor = std::uniform_real_distribution<double>(0.8, 1.0)(random_);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time * factor);
}

std::vector<SessionAction> SessionMachine::OnWelcome(const Welcome& welcome, BootTime now) {
  if (state_ != State::kGreeting) return {};
  state_ = State::kUp;
  backoff_.Reset();
  heartbeat_ = Clamped(welcome.heartbeat_seconds, 0.05, 600, 10);
  lease_ = Clamped(welcome.lease_seconds, 0.1, 3600, 30);
  lease_end_ = hello_sent_ + lease_;
  last_heard_ = now;
  next_beat_ = now;
  std::vector<SessionAction> actions{session_action::Welcomed{welcome}};
  actions.push_back(Beat(now));
  return actions;
}

std::vector<SessionAction> SessionMachine::OnRefuse(const Refuse& refuse, BootTime now) {
  if (state_ != State::kGreeting && state_ != State::kUp) return {};
  if (!refuse.retry) {
    state_ = State::kRefused;
    return {session_action::Close{}, session_action::Exit{refuse.message}};
  }
  WaitBeforeDial(now);
  return {session_action::Close{}};
}

std::vector<SessionAction> SessionMachine::OnHeartbeatAck(uint64_t number, BootTime now) {
  if (state_ != State::kUp) return {};
  last_heard_ = now;
  const auto found = sent_.find(number);
  if (found == sent_.end()) return {};
  const BootTime end = found->second + lease_;
  if (!lease_end_ || end > *lease_end_) lease_end_ = end;
  sent_.erase(sent_.begin(), std::next(found));
  return {};
}

std::vector<SessionAction> SessionMachine::OnClosed(BootTime now) {
  if (state_ == State::kGreeting || state_ == State::kUp) WaitBeforeDial(now);
  return {};
}

SessionAction SessionMachine::Beat(BootTime now) {
  next_beat_ = now + Jittered(heartbeat_);
  sent_[++last_number_] = now;
  if (sent_.size() > kMostUnacknowledged) sent_.erase(sent_.begin());
  return session_action::SendHeartbeat{last_number_};
}

std::vector<SessionAction> SessionMachine::BeatNow(BootTime now) {
  if (state_ != State::kUp) return {};
  return {Beat(now)};
}

std::vector<SessionAction> SessionMachine::OnTick(BootTime now) {
  std::vector<SessionAction> actions;
  // First, whatever else is due: an agent that slept must not beat before it kills.
  if (lease_end_ && now >= *lease_end_) {
    lease_end_.reset();
    actions.push_back(session_action::LeaseEnded{});
  }
  switch (state_) {
    case State::kWaiting:
      if (now < next_dial_) break;
      state_ = State::kGreeting;
      hello_sent_ = now;
      actions.push_back(session_action::Dial{});
      actions.push_back(session_action::SendHello{});
      break;
    case State::kGreeting:
      if (now < hello_sent_ + kWelcomeLimit) break;
      WaitBeforeDial(now);
      actions.push_back(session_action::Close{});
      break;
    case State::kUp:
      if (now >= last_heard_ + kMissedHeartbeats * heartbeat_) {
        WaitBeforeDial(now);
        actions.push_back(session_action::Close{});
      } else if (now >= next_beat_) {
        actions.push_back(Beat(now));
      }
      break;
    case State::kIdle:
    case State::kRefused:
      break;
  }
  return actions;
}

std::optional<BootTime> SessionMachine::NextDeadline() const {
  std::optional<BootTime> next = lease_end_;
  const auto consider = [&next](BootTime when) {
    if (!next || when < *next) next = when;
  };
  if (state_ == State::kWaiting) consider(next_dial_);
  if (state_ == State::kGreeting) consider(hello_sent_ + kWelcomeLimit);
  if (state_ == State::kUp) {
    consider(next_beat_);
    consider(last_heard_ + kMissedHeartbeats * heartbeat_);
  }
  return next;
}

}  // namespace assay
