// What a gang's GPUs run beside its cell, carried out: see gang_machine_side.cc and settle_rule.h.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/cell/gang_host.h"
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

// The cell's own workload without an end, and each GPU by itself.
CellFile LoadOf(CellFile cell) {
  Spec& spec = cell.spec;
  if (spec.batch == kBatchMax) spec.batch = kLoadBatchOfMax;
  if (spec.scaling == "strong") spec.batch = std::max<int64_t>(1, spec.batch / cell.world_size);
  if (spec.batch % std::max<int64_t>(1, spec.accumulate) != 0) spec.accumulate = 1;
  spec.scaling = "weak";
  spec.gpus = spec.nodes = 1;
  // Longer than the load may last: it is ended from here.
  const double seconds = 2 * static_cast<double>(kSettleCap.count());
  spec.stop = {0, seconds, seconds};
  cell.purpose = SideName(Side::kSettle);
  cell.rank = cell.local_rank = 0;
  cell.world_size = 1;
  cell.endpoint.clear();
  return cell;
}

std::chrono::nanoseconds SilenceOf(const Spec& spec) {
  return std::chrono::nanoseconds(static_cast<int64_t>(spec.limits.no_step_seconds * 1e9));
}

}  // namespace

void GangHost::Apply(const gang_action::RunSide& action) {
  const auto found = held_.find(action.attempt);
  if (found == held_.end()) return;
  HeldGang& held = *found->second;
  std::vector<std::string> uuids;
  for (const auto& rank : held.ranks) uuids.push_back(rank->device().uuid);
  std::unique_ptr<HeatWatch> heat = telemetry_.WatchHeat(uuids);
  if (heat == nullptr) {
    events_.push_back(gang_event::SideEnded{action.attempt, action.side, {}});
    return;
  }
  held.side = std::make_unique<HeldSide>(action.side, std::move(heat),
                                         SettleRule(SilenceOf(held.order.spec), clock_.Now()),
                                         loop_, reaper_, clock_);
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
    switch (side.rule.Look(clock_.Now(), side.heat->Read(), side.run.load())) {
      case SettleStep::kStartLoad:
        if (const absl::Status status = StartLoad(held); !status.ok()) {
          // The ranks will say so too; the load has left before it began.
          spdlog::warn("cannot start the load of {}: {}", attempt, Message(status));
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

absl::Status GangHost::StartLoad(HeldGang& held) {
  const std::string& attempt = held.order.attempt;
  std::vector<uint32_t> ranks;
  for (const auto& rank : held.ranks) ranks.push_back(rank->place().rank);
  // Twice, as for the ranks themselves.
  ASSAY_RETURN_IF_ERROR(files_.RecordPids(attempt, ranks, {}));
  for (const auto& rank : held.ranks) {
    const std::string name = fmt::format("settle{}", rank->place().rank);
    ASSAY_ASSIGN_OR_RETURN(const ChildSpec spec,
                           ChildOf(held, *rank, LoadOf(CellOf(held, *rank)), name));
    ASSAY_RETURN_IF_ERROR(held.side->run.Spawn(spec));
  }
  return files_.RecordPids(attempt, ranks, held.side->run.pids());
}

}  // namespace assay
