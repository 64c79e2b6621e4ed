// CoordinatorState: every decision of the coordinator, as one pure state machine.
//
//   Step(event, now) -> actions
//
// Owner and thread rule: owned and called by the state thread alone; it takes no lock, starts no
// thread, does no input or output and reads no clock. Deadlines use the BootTime that is passed in;
// WallTime is written to rows to be shown and decides nothing.
//
// Nothing that an agent or a user sends makes a Step fail: what does not fit is dropped or
// answered.
#ifndef ASSAY_COORDINATOR_SCHEDULER_COORDINATOR_STATE_H_
#define ASSAY_COORDINATOR_SCHEDULER_COORDINATOR_STATE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock/clock.h"
#include "common/fleet/inventory.h"
#include "common/matrix/feasibility.h"
#include "coordinator/cell/actions.h"
#include "coordinator/cell/events.h"
#include "coordinator/cell/rows.h"

namespace assay {

// Every timeout and limit, with the reason it exists.
struct CoordinatorTimes {
  using ms = std::chrono::milliseconds;
  // Seldom enough to cost nothing, often enough for three of them in a lease.
  ms heartbeat{10'000};
  // Three heartbeats: one lost and one late must not end hours of measuring.
  ms lease{30'000};
  // L: a runner leaves when its lifeline is silent for so long; over it a loaded node's agent would
  // lose its runners to a scheduling delay.
  ms lifeline{10'000};
  // TERM, this long, KILL: time for a runner to write its last record.
  ms kill_grace{5'000};
  // An agent's answer to Prepare: taking the GPU locks and one test connect.
  ms ready{15'000};
  // What an agent is told: both halves of Prepare and a slow commit fit in.
  ms prepare{60'000};
  // T: process start, library load and device set-up of every rank, from cold disks.
  ms join{300'000};
  // The most that is believed to run beside a cell: an agent's own limits are 10 min for settling
  // and 5 min for each of two sentinels.
  ms beside{1'260'000};
  // Added to a spec's no_step_seconds, since the agent decides first and needs time to report.
  ms no_step_margin{60'000};
  // Added to a spec's cell_seconds by the coordinator, for a commit and the way of the messages.
  ms cell_margin{5'000};
  // After Abort: kill grace and lifeline, then reaping; then the agent's own list of what it holds
  // decides.
  ms abort_margin{20'000};
  // With no target at all a run waits at least so long: agents dial in after the coordinator began.
  ms first_agent{30'000};
  // A target whose last node went away may come back (reboot, driver update) before its cells are
  // lost.
  ms target_gone{600'000};
  // Back-off after a refusal, doubled each time up to the rest, which is also how long a resting
  // node is left alone before the probe.
  ms refusal_backoff{1'000};
  ms rest{60'000};
  // The longest back-off from a GPU that another coordinator or user holds.
  ms busy{5'000};
  // A doctor's question: an agent that looks at its node has 90 s, and a commit may be before it.
  ms doctor{120'000};
  // Refusals in a row after which a node rests.
  int refusals_to_rest = 5;
  // Refusals of one cell, busy GPUs and draining aside, after which it fails instead of going
  // round for ever.
  int refusals_to_fail = 40;

  // With another heartbeat: lease, lifeline and kill grace keep their relation to it, but a grace
  // over that of the default would only delay.
  static CoordinatorTimes WithHeartbeat(ms heartbeat);
};

struct CoordinatorDeps {
  std::function<std::string(const Device&)> card_of;  // IdentifyDevice(...).name
  std::function<StackChoice(const Spec&, const Device&, std::string_view card,
                            std::span<const Stack>)>
      choose_stack;                             // ChooseStack
  std::function<std::string(WallTime)> new_id;  // NewUlid
  std::function<uint64_t()> new_seed;           // random; only its lower 62 bits are used
  // "img/s" of a model, for what is shown while it runs; may be unset.
  std::function<std::string(std::string_view model)> unit_of;
};
// The real ones: catalogue, ChooseStack, NewUlid, the kernel's random numbers.
CoordinatorDeps SystemDeps();

// --- what watchers see

struct ActiveCell {
  uint64_t cell = 0;
  std::string label;  // "resnet50 train amp-fp16 b64 eager on RTX 3090"
  std::string node;
  std::string phase;  // prepare, start, then as the runner says
  uint64_t step = 0;
  double throughput = 0;
  std::string unit;  // empty while unknown
  double seconds_left = 0;
  double seconds_running = 0;
  uint32_t attempt_number = 0;
};

struct EndedCell {
  uint64_t cell = 0;
  std::string label;
  Outcome outcome = Outcome::kOk;
  std::string reason;
  std::string message;
  double throughput = 0;
  std::string unit;
};

struct RunView {
  std::string run;
  std::string name;
  RunState state = RunState::kWaiting;
  std::string message;  // RunRow::message
  uint64_t cells = 0;
  uint64_t done = 0;
  std::map<std::string, uint64_t> outcomes;  // by name
  std::vector<ActiveCell> active;
  // Cells ended after the asked sequence number; ask next with `sequence`.
  std::vector<EndedCell> ended;
  uint64_t sequence = 0;
  double seconds_left = 0;  // 0 while unknown
  std::string waiting_for;  // a sentence while nothing runs
  bool final = false;       // ended, and no process of it is alive
};

struct AgentView {
  NodeInventory inventory;
  std::string state;      // up, draining (something runs), drained, lost, resting
  bool draining = false;  // asked for by a user; also while it is lost
  std::string address;
  int64_t last_seen_unix_ms = 0;
  std::vector<std::string> cards;  // for each device, in order
  std::vector<HeldCell> held;
};

class CoordinatorState {
 public:
  CoordinatorState(CoordinatorTimes times, CoordinatorDeps deps);
  ~CoordinatorState();
  CoordinatorState(const CoordinatorState&) = delete;
  CoordinatorState& operator=(const CoordinatorState&) = delete;

  // Once, before the first Step: what the store holds. Attempts that were started keep their GPUs
  // until their agent has spoken, or for one lease and the kill time from `now`.
  void Load(StateSnapshot snapshot, BootTime now);

  Actions Step(const Event& event, BootTime now, WallTime wall);

  // A run in memory, or one that ended lately (the last 64): later ones are asked of the store.
  // `since`: a sequence number of an earlier view; UINT64_MAX for no ended cells at all.
  std::optional<RunView> ViewOf(std::string_view run, uint64_t since, BootTime now) const;
  std::vector<AgentView> Agents() const;  // by node name
  // True while a run has not ended: the coordinator's idle exit waits for it.
  bool HasUnfinishedRuns() const;
  // Batches given out that are not durable yet.
  uint64_t CommitsInFlight() const;
  // Of the commits that were issued, in order: the last, and the last that is durable.
  uint64_t IssuedCommit() const;
  uint64_t DurableCommit() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_SCHEDULER_COORDINATOR_STATE_H_
