// Random event sequences for GangMachine, sound ones and nonsense: every gang that was begun ends
// once, nothing is reported ok that was not said so, and with processes that die when they are told
// to, no gang is held for ever.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <random>
#include <set>
#include <string>

#include "agent/cell/gang_machine.h"

namespace assay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// What the machine asked of its host, and what the host's processes did.
struct HostedRank {
  bool alive = false;
  bool greeted = false, joined = false, said_ok = false, garbage = false, told_to_stop = false;
};
struct Hosted {
  std::string state;  // acquiring, ready, settle, sentinel, running, closing
  std::optional<Side> side;
  bool side_told_to_stop = false;
  bool window = false;
  std::map<uint32_t, HostedRank> ranks;  // of this node
};

class RandomGangs {
 public:
  RandomGangs(uint64_t seed, std::set<std::string>& reached) : random_(seed), reached_(reached) {}

  void Disturb() {
    const std::string attempt = AnyAttempt();
    switch (Roll(17)) {
      case 16:
        return EndSide(attempt);
      case 0:
      case 1:
      case 2:
        return Offer(attempt);
      case 3:
        return Answer(attempt);
      case 4:
      case 5:
        return Do(gang_event::Started{{attempt, "host:1", 60}});
      case 6:
        return Roll(4) == 0 ? Abort(attempt) : Answer(attempt);
      case 7:
        return Unlikely();
      case 8:
        return Pass(milliseconds(Roll(20) == 0 ? Roll(400'000) : Roll(8000)));
      case 9:
        return Nonsense(attempt);
      default:
        return RankDoes(attempt);
    }
  }

  // What a step caused that is an event of its own.
  void Settle() {
    for (const gang_event::SpawnFailed& failed : std::exchange(failed_, {})) Do(failed);
  }

  // Nothing new comes; whoever is told to stop does so.
  void CheckThatAllEnds() {
    for (int i = 0; i < 2000 && !hosted_.empty(); ++i) {
      for (const auto& [attempt, hosted] : std::map(hosted_)) {
        EndSide(attempt);
        for (const auto& [rank, process] : hosted.ranks) {
          if (process.alive && process.told_to_stop) Die(attempt, rank, -1, SIGTERM);
        }
      }
      if (hosted_.empty()) break;
      const std::optional<BootTime> next = machine_.NextDeadline();
      ASSERT_TRUE(next.has_value()) << "a gang is held and nothing is waited for";
      Pass(*next - now_);
    }
    EXPECT_TRUE(hosted_.empty());
    EXPECT_TRUE(machine_.HeldAttempts().empty());
    EXPECT_FALSE(machine_.NextDeadline().has_value());
  }

 private:
  int Roll(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }
  std::string AnyAttempt() { return fmt::format("A{}", Roll(3)); }

  void Offer(const std::string& attempt) {
    PrepareOrder order;
    order.attempt = attempt;
    order.run = "R";
    order.prepare_seconds = 60;
    order.spec.limits = {.cell_seconds = 300, .no_step_seconds = 60};
    if (Roll(3) == 0) order.spec.thermal = "cold";
    order.closing = Roll(4) > 0;
    const int world = 1 + Roll(3);
    for (int rank = 0; rank < world; ++rank) {
      order.members.push_back({rank == 0 && Roll(4) == 0 ? "elsewhere" : "node",
                               Roll(25) == 0 ? "GPU-0" : fmt::format("GPU-{}", rank), 0});
    }
    Do(gang_event::Offered{order});
  }

  void Answer(const std::string& attempt) {
    const auto it = hosted_.find(attempt);
    if (it == hosted_.end() || it->second.state != "acquiring") return;
    if (Roll(4) > 0) return Do(gang_event::Prepared{attempt, "host:1"});
    hosted_.erase(it);
    Do(gang_event::PrepareFailed{attempt, refusal::kGpuBusy, "in use"});
  }

  // What runs beside ends by itself some time, whatever it came to, and at once when it is told to.
  void EndSide(const std::string& attempt) {
    const auto it = hosted_.find(attempt);
    if (it == hosted_.end() || !it->second.side.has_value()) return;
    const Side side = *std::exchange(it->second.side, std::nullopt);
    if (std::exchange(it->second.side_told_to_stop, false)) {
      reached_.insert("stopped in " + it->second.state);
    }
    SideResult result;
    result.applies = Roll(8) > 0;
    result.done = result.applies && Roll(6) > 0;
    result.hopeless = Roll(2) == 0;
    result.seconds = result.applies ? Roll(100) : 0;
    if (side == Side::kSentinel && result.done) result.throughput = 800.0;
    Do(gang_event::SideEnded{attempt, side, result});
    Settle();
  }

  void Abort(const std::string& attempt) {
    constexpr Outcome kOutcomes[] = {Outcome::kCancelled, Outcome::kTimeout, Outcome::kHung,
                                     Outcome::kLost, Outcome::kFail};
    Do(gang_event::Aborted{{attempt, kOutcomes[Roll(5)], ""}});
  }

  void Unlikely() {
    switch (Roll(8)) {
      case 0:
        return Do(gang_event::LeaseEnded{});
      case 1:
        return Do(gang_event::Welcomed{seconds(5), {AnyAttempt()}});
      case 2:
        return Do(gang_event::DrainSet{true});
      case 3:
        if (Roll(5) == 0) return Do(gang_event::Shutdown{});
        return;
      default:
        return Do(gang_event::DrainSet{false});
    }
  }

  // Of attempts and ranks that there are not, or not any more.
  void Nonsense(const std::string& attempt) {
    const uint32_t rank = static_cast<uint32_t>(7 + Roll(3));
    switch (Roll(6)) {
      case 0:
        return Do(gang_event::RankRecord{attempt, rank, record::Joined{}});
      case 4:
        return Do(gang_event::SideEnded{"nothing", Side::kSettle, {}});
      case 1:
        return Do(gang_event::RankGone{attempt, rank, 0, 0, "", false, false});
      case 2:
        return Do(gang_event::RankBroke{"nothing", 0, "?"});
      case 3:
        return Do(gang_event::SpawnFailed{"nothing", rank, "?"});
      default:
        return Do(gang_event::RecordsClosed{attempt, rank});
    }
  }

  void RankDoes(const std::string& attempt) {
    const auto it = hosted_.find(attempt);
    if (it == hosted_.end() || it->second.ranks.empty()) return;
    auto chosen = it->second.ranks.begin();
    std::advance(chosen, Roll(static_cast<int>(it->second.ranks.size())));
    if (chosen->second.alive) Act(attempt, chosen->first, chosen->second);
  }

  void Act(const std::string& attempt, uint32_t rank, HostedRank& process) {
    const auto say = [&](record::Parsed parsed) {
      Do(gang_event::RankRecord{attempt, rank, std::move(parsed)});
    };
    if (process.said_ok && Roll(4) > 0) return Die(attempt, rank, 0, 0);
    if (process.said_ok) process.garbage = true;  // whatever it says after its result is too much
    switch (Roll(40)) {
      case 0:
        process.garbage = true;
        return Do(gang_event::RankBroke{attempt, rank, "that is no record"});
      case 1:
        return Do(gang_event::RecordsClosed{attempt, rank});
      case 2:
        return Die(attempt, rank, Roll(2) == 0 ? 1 : 0, 0);
      case 3:
        return Die(attempt, rank, -1, SIGSEGV);
      case 4:
        return say(record::Result{"mem_limit", "out_of_memory", "no room", {}});
      case 5:
        return say(record::Result{"fail", "non_finite_loss", "the loss is not finite", {}});
      case 6:
        if (Roll(3) > 0) return;
        process.garbage = true;
        return say(record::Hello{1, "r", "1", 1, "GPU-of-another"});
      default:
        break;
    }
    if (!process.greeted && Roll(8) > 0) {
      process.greeted = true;
      return say(record::Hello{1, "r", "1", 1, fmt::format("GPU-{}", rank)});
    }
    if (!process.joined && Roll(8) > 0) {
      process.joined = true;
      return say(record::Joined{});
    }
    if (Roll(3) == 0) return say(record::Phase{Roll(2) == 0 ? "measure" : "warmup"});
    if (Roll(3) == 0) return say(record::Progress{1, 800.0, 1.0});
    if (process.greeted && process.joined && !process.garbage) process.said_ok = true;
    say(record::Result{"ok", "", "", {}});
  }

  void Die(const std::string& attempt, uint32_t rank, int code, int signal) {
    hosted_.at(attempt).ranks.at(rank).alive = false;
    Do(gang_event::RankGone{attempt, rank, code, signal, "", false, false});
  }

  void Pass(std::chrono::nanoseconds by) {
    now_ += by;
    Do(gang_event::Tick{});
    const std::optional<BootTime> next = machine_.NextDeadline();
    EXPECT_TRUE(!next.has_value() || *next > now_) << "would spin";
  }

  void Do(const GangEvent& event) {
    for (const GangAction& action : machine_.Step(event, now_)) {
      std::visit([this](const auto& each) { On(each); }, action);
    }
    std::set<std::string> held, mine;
    for (const std::string& attempt : machine_.HeldAttempts()) held.insert(attempt);
    for (const auto& [attempt, hosted] : hosted_) {
      mine.insert(attempt);
      reached_.insert(hosted.state);
    }
    EXPECT_EQ(held, mine);
  }

  void On(const gang_action::Acquire& acquire) {
    EXPECT_FALSE(hosted_.contains(acquire.order.attempt)) << "acquired twice";
    Hosted& hosted = hosted_[acquire.order.attempt];
    hosted.state = "acquiring";
    for (const LocalRank& rank : acquire.ranks) hosted.ranks[rank.rank];
  }
  void On(const gang_action::Release& release) {
    const auto it = hosted_.find(release.attempt);
    if (it == hosted_.end()) return;  // of what came after its end
    EXPECT_NE(it->second.state, "running") << "released while it runs";
    reached_.insert("released in " + it->second.state);
    hosted_.erase(it);
  }
  void On(const gang_action::Spawn& spawn) {
    Hosted& hosted = hosted_.at(spawn.attempt);
    EXPECT_FALSE(hosted.side.has_value()) << "ranks start beside a load";
    EXPECT_FALSE(hosted.state == "acquiring" || hosted.state == "running" ||
                 hosted.state == "closing")
        << hosted.state;
    hosted.state = "running";
    for (auto& [rank, process] : hosted.ranks) {
      process.alive = Roll(15) > 0;
      if (!process.alive) failed_.push_back({spawn.attempt, rank, "no such file"});
    }
  }
  void On(const gang_action::RunSide& run) {
    Hosted& hosted = hosted_.at(run.attempt);
    EXPECT_FALSE(hosted.side.has_value()) << "two things run beside at once";
    for (const auto& [rank, process] : hosted.ranks) EXPECT_FALSE(process.alive);
    hosted.side = run.side;
    EXPECT_NE(hosted.state, "acquiring");
    EXPECT_TRUE(hosted.state != "running" || run.side == Side::kSentinel) << "settled too late";
    hosted.state = hosted.state == "running" ? "closing" : SideName(run.side);
  }
  void On(const gang_action::StopSide& stop) {
    Hosted& hosted = hosted_.at(stop.attempt);
    EXPECT_TRUE(hosted.side.has_value()) << "stops what does not run";
    hosted.side_told_to_stop = true;
  }
  void On(const gang_action::StopRank& stop) {
    HostedRank& process = hosted_.at(stop.attempt).ranks.at(stop.rank);
    EXPECT_TRUE(process.alive) << "stops a process that is gone";
    process.told_to_stop = true;
  }
  void On(const gang_action::WindowBegin& begin) {
    EXPECT_FALSE(std::exchange(hosted_.at(begin.attempt).window, true));
    reached_.insert("window");
  }
  void On(const gang_action::WindowEnd& end) {
    EXPECT_TRUE(std::exchange(hosted_.at(end.attempt).window, false));
  }
  void On(const gang_action::Send& send) {
    if (const auto* ready = std::get_if<GangReady>(&send.message)) {
      hosted_.at(ready->attempt).state = "ready";
    } else if (const auto* refused = std::get_if<GangRefused>(&send.message)) {
      reached_.insert("refused: " + refused->reason);
    }
  }
  void On(const gang_action::Finish& finish) {
    const auto it = hosted_.find(finish.report.attempt);
    ASSERT_TRUE(it != hosted_.end()) << "reported twice";
    EXPECT_FALSE(it->second.window) << "the window was left open";
    EXPECT_FALSE(it->second.side.has_value()) << "reported before the sentinel had ended";
    EXPECT_EQ(finish.report.ranks.size(), it->second.ranks.size());
    for (const RankReport& rank : finish.report.ranks) {
      const HostedRank& process = it->second.ranks.at(rank.rank);
      EXPECT_FALSE(process.alive) << "reported before it was gone";
      reached_.insert(rank.outcome == Outcome::kOk ? "ok" : rank.reason);
      if (rank.outcome == Outcome::kOk) {
        EXPECT_TRUE(process.said_ok) << "ok, and never said so";
        continue;
      }
      EXPECT_FALSE(rank.reason.empty() || rank.message.empty());
    }
    hosted_.erase(it);
  }
  void On(const gang_action::Warn&) {}

  std::mt19937_64 random_;
  std::set<std::string>& reached_;
  GangMachine machine_{"node"};
  BootTime now_{seconds(1000)};
  std::map<std::string, Hosted> hosted_;
  std::vector<gang_event::SpawnFailed> failed_;
};

TEST(RandomGangs, EachEndsOnceAndNothingIsOkThatWasNotSaidSo) {
  std::set<std::string> reached;
  const uint64_t seeds = ASSAY_SANITIZED ? 1000 : 2000;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    RandomGangs gangs(seed, reached);
    for (uint64_t i = 0; i < 20 + seed % 200; ++i) {
      gangs.Disturb();
      gangs.Settle();
    }
    gangs.CheckThatAllEnds();
    if (HasFailure()) return;
  }
  for (const char* state : {"acquiring",
                            "ready",
                            "running",
                            "settle",
                            "sentinel",
                            "closing",
                            "stopped in settle",
                            "stopped in sentinel",
                            "stopped in closing",
                            "window",
                            "released in acquiring",
                            "released in ready",
                            "refused: draining",
                            "refused: bad_offer",
                            "refused: gpu_busy",
                            "ok",
                            "out_of_memory",
                            "non_finite_loss",
                            "crash",
                            "bad_output",
                            "start_failed",
                            "no_progress",
                            "cell_limit",
                            "agent_lost",
                            "user_cancelled",
                            "join_timeout"}) {
    EXPECT_TRUE(reached.contains(state)) << state << " was never reached";
  }
}

}  // namespace
}  // namespace assay
