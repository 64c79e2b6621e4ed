// What a gang's GPUs run beside its cell: see gang_machine.h.
#include <algorithm>
#include <cmath>
#include <utility>

#include "agent/cell/gang_machine.h"

namespace assay {

std::string_view SideName(Side side) {
  switch (side) {
    case Side::kSettle:
      return "settle";
  }
  return "";
}

std::chrono::nanoseconds GangMachine::SafeSeconds(double seconds, double fallback) {
  constexpr double kWeek = 7 * 86400.0;
  if (!std::isfinite(seconds) || seconds <= 0) seconds = fallback;
  return std::chrono::nanoseconds(static_cast<int64_t>(std::min(seconds, kWeek) * 1e9));
}

std::vector<std::string> GangMachine::GpusOf(const Gang& gang) {
  std::vector<std::string> uuids;
  for (const Rank& rank : gang.ranks) {
    if (!rank.place.gpu_uuid.starts_with("CPU-")) uuids.push_back(rank.place.gpu_uuid);
  }
  return uuids;
}

bool GangMachine::NeedsSettling(const Gang& gang) const {
  const std::vector<std::string> gpus = GpusOf(gang);
  if (gang.order.spec.thermal != "settled" || gpus.empty() || gang.settled_here) return false;
  // The nodes of a gang would be done at different times, and the first would wait and cool.
  if (gang.ranks.size() < gang.order.members.size()) return false;
  return !heat_.Settled(gpus).has_value();
}

void GangMachine::Proceed(Gang& gang) {
  if (NeedsSettling(gang)) {
    gang.settled_here = true;
    gang.state = State::kBeside;
    gang.progress.phase = SideName(Side::kSettle);
    SendProgress(gang);
    gang.next_progress = now_ + kSideProgressInterval;
    return Emit(gang_action::RunSide{gang.order.attempt, Side::kSettle});
  }
  StartRanks(gang);
}

void GangMachine::StartRanks(Gang& gang) {
  gang.progress.phase.clear();
  NoteSettled(gang);
  gang.state = State::kRunning;
  gang.started = now_;
  // Exact: the coordinator adds a margin for its messages and is the backstop.
  gang.cell_limit = now_ + SafeSeconds(gang.order.spec.limits.cell_seconds, 900);
  for (Rank& rank : gang.ranks) rank.last_sign = now_;
  Emit(gang_action::Spawn{gang.order.attempt, gang.start_endpoint});
}

// Says of the cell what it is: whether its GPUs were settled, if that was asked and can be.
void GangMachine::NoteSettled(Gang& gang) const {
  const std::vector<std::string> gpus = GpusOf(gang);
  if (gang.order.spec.thermal != "settled" || gpus.empty()) return;
  std::optional<bool> settled = heat_.Settled(gpus);
  const bool tried = gang.telemetry.Has(Field::kSettleSeconds);
  if (!settled && (tried || gang.ranks.size() < gang.order.members.size())) settled = false;
  if (!settled) return;
  gang.telemetry.Set(Field::kSettled, *settled).IgnoreError();
  if (!tried) gang.telemetry.Set(Field::kSettleSeconds, 0.0).IgnoreError();  // still warm
}

void GangMachine::On(const gang_event::SideEnded& event) {
  Gang* gang = FindGang(event.attempt);
  if (gang == nullptr || gang->state != State::kBeside) return;
  const SideResult& side = event.result;
  if (side.applies) {
    if (side.seconds > 0) heat_.NoteLoad(GpusOf(*gang), now_);
    const bool lasting = side.done || side.hopeless;
    if (lasting && !gang->ended_by) heat_.NoteSettled(GpusOf(*gang), side.done);
    const auto set = [&](Field field, const std::optional<double>& value) {
      if (value) gang->telemetry.Set(field, *value).IgnoreError();
    };
    set(Field::kSettleSeconds, side.seconds);
    set(Field::kSettleBeginCelsius, side.begin_celsius);
    set(Field::kSettleEndCelsius, side.end_celsius);
    set(Field::kSettleCelsiusPerSecond, side.celsius_per_second);
    set(Field::kSettleClockRatioPerSecond, side.clock_ratio_per_second);
    if (!side.done && !gang->ended_by) {
      Emit(gang_action::Warn{"attempt " + event.attempt + " is unsettled: " + side.why});
    }
  }
  if (!gang->ended_by) return Proceed(*gang);
  gang->state = State::kRunning;
  gang->started = now_;
  for (size_t index = 0; index < gang->ranks.size(); ++index) {
    gang->ranks[index].stopped = true;
    Conclude(*gang, index, *gang->ended_by);
  }
  FinishWhenAllGone(*gang);
}

void GangMachine::TickSide(Gang& gang) {
  if (now_ < gang.next_progress) return;
  SendProgress(gang);
  gang.next_progress = now_ + kSideProgressInterval;
}

}  // namespace assay
