// Random event sequences for SessionMachine: whatever a coordinator, a network and a clock do to
// it, its lease is what it was promised, it never spins, and once the other side is well it is up.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>

#include "agent/session/session_machine.h"

namespace assay {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class RandomSession {
 public:
  RandomSession(uint64_t seed, std::set<std::string>& reached)
      : random_(seed), machine_(seed), reached_(reached) {
    Take(machine_.Start(now_));
  }

  void Disturb() {
    switch (Roll(12)) {
      case 0:
        if (open_) Closed();
        return;
      case 1:
        return Take(machine_.OnRefuse({"not_admitted", "later", Roll(40) != 0}, now_));
      case 2:
      case 3:
        return SayWelcome();
      case 4:
        return Take(machine_.BeatNow(now_));
      case 5:
      case 6:
        return Acknowledge();
      case 7:
        return Pass(milliseconds(Roll(60'000)));
      default:
        return Pass(milliseconds(Roll(3000)));
    }
  }

  // A coordinator that answers at once; true while nothing went wrong with the machine.
  void CheckThatItComesUp() {
    if (state_ == "refused") return;
    ComeUp();
    if (heartbeat_ != seconds(10) || lease_ != seconds(30)) {  // of a coordinator that is no more
      Closed();
      ComeUp();
    }
    const int leases = leases_ended_;
    for (const BootTime calm = now_ + seconds(600); now_ < calm;) {
      NoteAck(last_beat_);
      Take(machine_.OnHeartbeatAck(last_beat_, now_));
      PassToDeadline();
      ASSERT_TRUE(machine_.up());
    }
    EXPECT_EQ(leases_ended_, leases);
  }

 private:
  void ComeUp() {
    const BootTime end = now_ + kLongestBackoff + kWelcomeLimit;
    while (!machine_.up() && now_ < end) {
      if (state_ == "greeting") {
        SayWelcome(10);
      } else {
        PassToDeadline();
      }
    }
    ASSERT_TRUE(machine_.up());
  }

  int Roll(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

  void Enter(const char* state) {
    state_ = state;
    reached_.insert(state_);
  }

  void Closed() {
    open_ = false;
    if (state_ != "refused") Enter("waiting");
    Take(machine_.OnClosed(now_));
  }

  void SayWelcome(double heartbeat = 0) {
    constexpr double kOdd[] = {10, 10, 0.5, 0, -3, 1e300, std::numeric_limits<double>::quiet_NaN()};
    Welcome welcome{1, 1, heartbeat, 30, 10, 5, {}};
    if (heartbeat == 0) {
      welcome.heartbeat_seconds = kOdd[Roll(std::size(kOdd))];
      welcome.lease_seconds = kOdd[Roll(std::size(kOdd))] * 3;
    }
    const bool counts = state_ == "greeting";
    if (counts) {
      heartbeat_ = Sensible(welcome.heartbeat_seconds, 0.05, 600, 10);
      lease_ = Sensible(welcome.lease_seconds, 0.1, 3600, 30);
      lease_end_ = hello_at_ + lease_;
      sent_.clear();
      Enter("up");
    }
    Take(machine_.OnWelcome(welcome, now_));
    EXPECT_EQ(machine_.up(), state_ == "up");
  }

  static nanoseconds Sensible(double seconds, double least, double most, double otherwise) {
    if (!(seconds > 0) || seconds > 1e299) seconds = seconds > 0 ? most : otherwise;
    return nanoseconds(static_cast<int64_t>(std::min(std::max(seconds, least), most) * 1e9));
  }

  // Of a beat that was sent, of one long ago, or of none.
  void Acknowledge() {
    const uint64_t number = last_beat_ - static_cast<uint64_t>(Roll(4));
    NoteAck(number);
    Take(machine_.OnHeartbeatAck(number, now_));
  }
  void NoteAck(uint64_t number) {
    if (state_ != "up" || !sent_.contains(number)) return;
    const BootTime end = sent_[number] + lease_;
    if (!lease_end_ || end > *lease_end_) lease_end_ = end;
    sent_.erase(sent_.begin(), std::next(sent_.find(number)));
  }

  void Pass(nanoseconds by) {
    now_ += by;
    Take(machine_.OnTick(now_));
    const std::optional<BootTime> next = machine_.NextDeadline();
    if (state_ == "refused") return;
    ASSERT_TRUE(next.has_value()) << state_;
    EXPECT_GT(*next, now_) << "would spin in " << state_;
    EXPECT_TRUE(state_ != "waiting" || *next - now_ <= kLongestBackoff);
  }
  // A short lease may have ended before its Welcome came.
  void PassToDeadline() { Pass(std::max(nanoseconds(0), *machine_.NextDeadline() - now_)); }

  void Take(const std::vector<SessionAction>& actions) {
    for (const SessionAction& action : actions) {
      std::visit([this](const auto& each) { On(each); }, action);
    }
    CheckLease();
  }
  void CheckLease() { EXPECT_EQ(machine_.lease_end(), lease_end_) << state_; }

  void On(const session_action::Dial&) {
    EXPECT_FALSE(open_) << "dials with a stream open";
    open_ = true;
    Enter("greeting");
  }
  void On(const session_action::Close&) {
    EXPECT_TRUE(open_);
    open_ = false;
    reached_.insert("closed in " + state_);
    Enter("waiting");
  }
  void On(const session_action::SendHello&) {
    EXPECT_TRUE(open_ && state_ == "greeting");
    hello_at_ = now_;
  }
  void On(const session_action::SendHeartbeat& beat) {
    EXPECT_TRUE(open_ && machine_.up());
    EXPECT_GT(beat.number, last_beat_);
    last_beat_ = beat.number;
    sent_[beat.number] = now_;
    constexpr size_t kRemembered = 16;
    if (sent_.size() > kRemembered) sent_.erase(sent_.begin());
  }
  void On(const session_action::Welcomed&) {
    EXPECT_TRUE(open_);
    if (leases_ended_ > 0) reached_.insert("back after a lease");
  }
  void On(const session_action::LeaseEnded&) {
    ASSERT_TRUE(lease_end_.has_value()) << "a lease ended twice";
    EXPECT_GE(now_, *lease_end_) << "a lease ended early";
    lease_end_.reset();
    ++leases_ended_;
    reached_.insert("lease ended in " + state_);
  }
  void On(const session_action::Exit&) { Enter("refused"); }

  std::mt19937_64 random_;
  SessionMachine machine_;
  std::set<std::string>& reached_;
  BootTime now_{seconds(1000)};
  std::string state_ = "idle";
  bool open_ = false;
  BootTime hello_at_{};
  nanoseconds heartbeat_ = seconds(10), lease_ = seconds(30);
  std::optional<BootTime> lease_end_;
  std::map<uint64_t, BootTime> sent_;
  uint64_t last_beat_ = 0;
  int leases_ended_ = 0;
};

TEST(RandomSession, KeepsItsLeaseNeverSpinsAndComesUpFromEveryState) {
  std::set<std::string> reached;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    RandomSession session(seed, reached);
    for (uint64_t i = 0; i < 5 + seed % 60; ++i) session.Disturb();
    session.CheckThatItComesUp();
    if (HasFailure()) return;
  }
  for (const char* state : {"waiting", "greeting", "up", "refused", "closed in greeting",
                            "closed in up", "lease ended in waiting", "lease ended in greeting",
                            "lease ended in up", "back after a lease"}) {
    EXPECT_TRUE(reached.contains(state)) << state << " was never reached";
  }
}

}  // namespace
}  // namespace assay
