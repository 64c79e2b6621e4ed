// SessionMachine: when to dial, to say Hello, to beat, and when the lease has ended. Pure.
//
// The lease counts from the *sending* of the heartbeat that was acknowledged, on this machine's
// boot clock: the coordinator, which counts from its receipt, can only be later.
//
// Thread rule: one owner.
#ifndef ASSAY_AGENT_SESSION_SESSION_MACHINE_H_
#define ASSAY_AGENT_SESSION_SESSION_MACHINE_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "agent/session/messages.h"
#include "common/clock/clock.h"
#include "common/net/backoff.h"

namespace assay {

// From Hello to Welcome: the coordinator commits the session's epoch first.
inline constexpr std::chrono::seconds kWelcomeLimit{20};
// Silence of so many heartbeats ends the stream; a dead peer behind a dead switch says nothing.
inline constexpr int kMissedHeartbeats = 3;
inline constexpr std::chrono::milliseconds kFirstBackoff{200};
inline constexpr std::chrono::milliseconds kLongestBackoff{5000};

namespace session_action {
struct Dial {};
struct Close {};
struct SendHello {};
struct SendHeartbeat {
  uint64_t number = 0;
};
struct Welcomed {
  Welcome welcome;
};
struct LeaseEnded {};
struct Exit {  // refused for good
  std::string message;
};
}  // namespace session_action

using SessionAction =
    std::variant<session_action::Dial, session_action::Close, session_action::SendHello,
                 session_action::SendHeartbeat, session_action::Welcomed,
                 session_action::LeaseEnded, session_action::Exit>;

class SessionMachine {
 public:
  explicit SessionMachine(uint64_t seed)
      : backoff_(kFirstBackoff, kLongestBackoff, seed), random_(seed) {}

  std::vector<SessionAction> Start(BootTime now);
  std::vector<SessionAction> OnWelcome(const Welcome& welcome, BootTime now);
  std::vector<SessionAction> OnRefuse(const Refuse& refuse, BootTime now);
  std::vector<SessionAction> OnHeartbeatAck(uint64_t number, BootTime now);
  std::vector<SessionAction> OnClosed(BootTime now);
  std::vector<SessionAction> OnTick(BootTime now);
  // A heartbeat now: the list of held attempts changed.
  std::vector<SessionAction> BeatNow(BootTime now);

  std::optional<BootTime> NextDeadline() const;
  bool up() const { return state_ == State::kUp; }
  std::optional<BootTime> lease_end() const { return lease_end_; }

 private:
  enum class State { kIdle, kWaiting, kGreeting, kUp, kRefused };

  SessionAction Beat(BootTime now);
  void WaitBeforeDial(BootTime now);
  std::chrono::nanoseconds Jittered(std::chrono::nanoseconds time);

  State state_ = State::kIdle;
  Backoff backoff_;
  std::mt19937_64 random_;
  BootTime next_dial_{};
  BootTime hello_sent_{};
  BootTime last_heard_{};
  BootTime next_beat_{};
  std::chrono::nanoseconds heartbeat_{std::chrono::seconds(10)};
  std::chrono::nanoseconds lease_{std::chrono::seconds(30)};
  std::optional<BootTime> lease_end_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, BootTime> sent_;  // heartbeats not acknowledged yet
};

}  // namespace assay

#endif  // ASSAY_AGENT_SESSION_SESSION_MACHINE_H_
