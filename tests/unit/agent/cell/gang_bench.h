// A GangMachine with a clock that tests move, and what it asked for.
#ifndef ASSAY_TESTS_UNIT_AGENT_CELL_GANG_BENCH_H_
#define ASSAY_TESTS_UNIT_AGENT_CELL_GANG_BENCH_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "agent/cell/gang_machine.h"

namespace assay {

inline constexpr char kAttempt[] = "01ATTEMPT";

class GangMachineTest : public testing::Test {
 protected:
  PrepareOrder Order(size_t ranks) {
    PrepareOrder order;
    order.attempt = kAttempt;
    order.run = "01RUN";
    order.cell = 7;
    order.stack = "s";
    order.prepare_seconds = 60;
    order.spec.thermal = thermal_;
    order.spec.limits = {.cell_seconds = 900, .no_step_seconds = 120};
    for (size_t i = 0; i < ranks; ++i) {
      order.members.push_back({"node", "GPU-" + std::to_string(i), static_cast<uint32_t>(i)});
    }
    return order;
  }
  void Do(const GangEvent& event) {
    for (GangAction& action : machine_.Step(event, clock_.Now())) {
      actions_.push_back(std::move(action));
    }
  }
  void Advance(std::chrono::nanoseconds by) {
    clock_.Advance(by);
    Do(gang_event::Tick{});
  }
  // Advances to the machine's own next deadline, as the host does.
  void AdvanceToDeadline() {
    ASSERT_TRUE(machine_.NextDeadline().has_value());
    clock_.Advance(*machine_.NextDeadline() - clock_.Now());
    Do(gang_event::Tick{});
  }
  void Run(size_t ranks) { RunOrder(Order(ranks)); }
  void RunOrder(const PrepareOrder& order) {
    Do(gang_event::Offered{order});
    Do(gang_event::Prepared{kAttempt, "127.0.0.1:1"});
    Do(gang_event::Started{{kAttempt, "127.0.0.1:1", 60}});
    actions_.clear();
  }
  void Say(uint32_t rank, record::Parsed record) {
    Do(gang_event::RankRecord{kAttempt, rank, std::move(record)});
  }
  // What every sound runner says before its figures.
  void Greet(uint32_t rank) {
    Say(rank, record::Hello{1, "assay-train", "0.1.0", 1, "GPU-" + std::to_string(rank)});
    Say(rank, record::Joined{});
  }
  void Result(uint32_t rank, const std::string& outcome, const std::string& reason = "",
              const std::string& message = "") {
    Say(rank, record::Result{outcome, reason, message, {}});
  }
  void Gone(uint32_t rank, int code, int signal = 0, const std::string& tail = "") {
    gang_event::RankGone gone;
    gone.attempt = kAttempt;
    gone.rank = rank;
    gone.exit_code = code;
    gone.signal = signal;
    gone.log_tail = tail;
    Do(gone);
  }
  template <class T>
  std::vector<T> All() {
    std::vector<T> found;
    for (const GangAction& action : actions_) {
      if (const auto* match = std::get_if<T>(&action)) found.push_back(*match);
    }
    return found;
  }
  template <class T>
  std::vector<T> Sent() {
    std::vector<T> found;
    for (const auto& send : All<gang_action::Send>()) {
      if (const auto* match = std::get_if<T>(&send.message)) found.push_back(*match);
    }
    return found;
  }
  std::vector<uint32_t> Stopped() {
    std::vector<uint32_t> ranks;
    for (const auto& stop : All<gang_action::StopRank>()) ranks.push_back(stop.rank);
    return ranks;
  }
  RankReport Report(size_t index) {
    const auto finished = All<gang_action::Finish>();
    if (finished.size() != 1 || index >= finished[0].report.ranks.size()) {
      ADD_FAILURE() << finished.size() << " reports";
      return {};
    }
    return finished[0].report.ranks[index];
  }

  std::string thermal_ = "cold";
  FakeClock clock_;
  GangMachine machine_{"node"};
  std::vector<GangAction> actions_;
};

}  // namespace assay

#endif  // ASSAY_TESTS_UNIT_AGENT_CELL_GANG_BENCH_H_
