// What a gang's GPUs run beside its cell, carried out: see gang_machine_side.cc and settle_rule.h.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/cell/gang_host.h"
#include "agent/cell/rank_result.h"
#include "agent/cell/sentinel.h"
#include "common/log/log.h"
#include "common/status/status.h"

namespace assay {
namespace {

// Flat is a matter of tens of seconds.
constexpr std::chrono::milliseconds kSideLook{250};
// For a load that is done with: nothing of it is wanted any more.
constexpr std::chrono::seconds kLoadGrace{2};
// A cell of the largest batch has none yet; this one loads every card and fits every one.
constexpr int64_t kLoadBatchOfMax = 32;

// Each GPU by itself, whatever the cell is.
CellFile Alone(CellFile cell, Side side) {
  cell.purpose = SideName(side);
  cell.rank = cell.local_rank = 0;
  cell.world_size = 1;
  cell.endpoint.clear();
  cell.spec.scaling = "weak";
  cell.spec.gpus = cell.spec.nodes = 1;
  return cell;
}

// The cell's own workload without an end.
CellFile LoadOf(CellFile cell) {
  Spec& spec = cell.spec;
  if (spec.batch == kBatchMax) spec.batch = kLoadBatchOfMax;
  // A GPU by itself has no peer.
  if (spec.mode == "peak" && spec.model == "peer") spec.model = "copy";
  if (spec.scaling == "strong") spec.batch = std::max<int64_t>(1, spec.batch / cell.world_size);
  if (spec.batch % std::max<int64_t>(1, spec.accumulate) != 0) spec.accumulate = 1;
  // Longer than the load may last: it is ended from here.
  const double seconds = 2 * static_cast<double>(kSettleCap.count());
  spec.stop = {0, seconds, seconds};
  return Alone(std::move(cell), Side::kSettle);
}

// The same weights and data each time.
CellFile SentinelOf(CellFile cell, const Spec& spec) {
  cell.spec = spec;
  cell.seed = 1;
  return Alone(std::move(cell), Side::kSentinel);
}

}  // namespace

void GangHost::Apply(const gang_action::RunSide& action) {
  const auto found = held_.find(action.attempt);
  if (found == held_.end()) return;
  HeldGang& held = *found->second;
  FinishTelemetry(held);
  std::vector<std::string> uuids;
  for (const auto& rank : held.ranks) uuids.push_back(rank->device().uuid);
  // What has no heat does not drift either.
  std::unique_ptr<HeatWatch> heat = telemetry_.WatchHeat(uuids);
  const bool sentinel = action.side == Side::kSentinel;
  if (heat == nullptr ||
      (sentinel && !SentinelSpec(held.ranks.front()->device(), held.stack.stack))) {
    events_.push_back(gang_event::SideEnded{action.attempt, action.side, {}});
    return;
  }
  held.side = std::make_unique<HeldSide>(action.side,
                                         SafeSeconds(held.order.spec.limits.no_step_seconds, 120),
                                         loop_, reaper_, clock_);
  if (sentinel) {
    if (const absl::Status status = StartSide(held); !status.ok()) {
      spdlog::warn("cannot start the sentinel of {}: {}", action.attempt, Message(status));
    }
  } else {
    held.side->heat = std::move(heat);
  }
  LookAtSide(action.attempt);
}

void GangHost::Apply(const gang_action::StopSide& action) {
  const auto found = held_.find(action.attempt);
  if (found == held_.end() || found->second->side == nullptr) return;
  HeldSide& side = *found->second->side;
  if (!side.result) side.result = side.rule.result();
  side.run.Stop(action.grace);
}

void GangHost::LookAtSide(const std::string& attempt) {
  const auto found = held_.find(attempt);
  if (found == held_.end() || found->second->side == nullptr) return;
  HeldGang& held = *found->second;
  HeldSide& side = *held.side;
  if (!side.result) {
    if (side.side == Side::kSettle) LookAtLoad(held);
    if (side.side == Side::kSentinel) LookAtSentinel(held);
  }
  if (side.result && side.run.Gone()) {
    const SideResult result = *side.result;
    const Side which = side.side;
    held.side.reset();
    return Post(gang_event::SideEnded{attempt, which, result});
  }
  loop_.RunAt(BootClock::now() + kSideLook, [this, attempt, alive = alive_] {
    if (*alive) LookAtSide(attempt);
  });
}

void GangHost::LookAtLoad(HeldGang& held) {
  HeldSide& side = *held.side;
  switch (side.rule.Look(clock_.Now(), side.heat->Read(), side.run.load())) {
    case SettleStep::kStartLoad:
      if (const absl::Status status = StartSide(held); !status.ok()) {
        // The ranks will say so too; the load has left before it began.
        spdlog::warn("cannot start the load of {}: {}", held.order.attempt, Message(status));
      }
      break;
    case SettleStep::kLoadBegan:
      side.heat->LoadBegan();
      break;
    case SettleStep::kEnd:
      side.result = side.rule.result();
      side.run.Stop(kLoadGrace);
      break;
    case SettleStep::kWait:
      break;
  }
}

void GangHost::LookAtSentinel(HeldGang& held) {
  HeldSide& side = *held.side;
  const BootTime now = clock_.Now();
  const bool over = now - side.began >= kSentinelLimit;
  const bool silent = now - side.run.load().last_sign >= side.silence;
  if (!side.run.Gone() && !over && !silent) return;
  SideResult result;
  result.applies = true;
  result.seconds = std::chrono::duration<double>(now - side.began).count();
  result.throughput = side.run.throughput();
  result.done = result.throughput.has_value();
  if (!result.done) result.why = side.run.Gone() ? "its runner gave no result" : "it took too long";
  side.result = result;
  side.run.Stop(kLoadGrace);
}

absl::Status GangHost::StartSide(HeldGang& held) {
  const std::string& attempt = held.order.attempt;
  std::vector<uint32_t> ranks;
  for (const auto& rank : held.ranks) ranks.push_back(rank->place().rank);
  // Twice, as for the ranks themselves.
  ASSAY_RETURN_IF_ERROR(files_.RecordPids(attempt, ranks, {}));
  for (const auto& rank : held.ranks) {
    CellFile cell = CellOf(held, *rank);
    const std::optional<Spec> sentinel = SentinelSpec(rank->device(), held.stack.stack);
    cell = held.side->side == Side::kSentinel && sentinel ? SentinelOf(std::move(cell), *sentinel)
                                                          : LoadOf(std::move(cell));
    const std::string name = fmt::format("{}{}", cell.purpose, rank->place().rank);
    ASSAY_ASSIGN_OR_RETURN(const ChildSpec spec, ChildOf(held, *rank, cell, name));
    ASSAY_RETURN_IF_ERROR(held.side->run.Spawn(spec));
  }
  return files_.RecordPids(attempt, ranks, held.side->run.pids());
}

}  // namespace assay
