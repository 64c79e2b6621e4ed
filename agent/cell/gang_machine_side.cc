// What a gang's GPUs run beside its cell: see gang_machine.h.
#include <algorithm>
#include <utility>

#include "agent/cell/gang_machine.h"
#include "agent/cell/rank_result.h"

namespace assay {

std::string_view SideName(Side side) {
  switch (side) {
    case Side::kSettle:
      return "settle";
    case Side::kSentinel:
      return "sentinel";
  }
  return "";
}

std::vector<std::string> GangMachine::GpusOf(const Gang& gang) {
  std::vector<std::string> uuids;
  for (const Rank& rank : gang.ranks) {
    if (!rank.place.gpu_uuid.starts_with("CPU-")) uuids.push_back(rank.place.gpu_uuid);
  }
  return uuids;
}

void GangMachine::NoteWindow(Rank& rank, bool measuring) {
  if (measuring && !rank.measured_from) rank.measured_from = now_;
  if (!measuring && rank.measured_from && !rank.measured_to) rank.measured_to = now_;
}

// Of neighbours that measure at once: how long together, and the longest window as the agent saw
// it, since the runners' figure is over their longest one.
void GangMachine::NoteTogether(const Gang& gang, Record& telemetry) {
  if (gang.order.spec.colocate != "all") return;
  std::chrono::nanoseconds longest{0};
  BootTime begin = BootTime::min(), end = BootTime::max();
  for (const Rank& rank : gang.ranks) {
    if (!rank.measured_from || !rank.measured_to) return;
    longest = std::max(longest, *rank.measured_to - *rank.measured_from);
    begin = std::max(begin, *rank.measured_from);
    end = std::min(end, *rank.measured_to);
  }
  if (longest <= std::chrono::nanoseconds::zero()) return;
  const std::chrono::duration<double> common =
      std::max(end - begin, std::chrono::nanoseconds::zero());
  const double window = std::chrono::duration<double>(longest).count();
  telemetry.Set(Field::kColocateOverlapRatio, common.count() / window).IgnoreError();
  telemetry.Set(Field::kWindowSeconds, window).IgnoreError();
}

bool GangMachine::MayRunBeside(const Gang& gang) const {
  if (gang.order.spec.thermal != "settled" || GpusOf(gang).empty()) return false;
  // The nodes of a gang would be done at different times, and the first would wait and cool.
  return gang.ranks.size() == gang.order.members.size() && !gang.nothing_beside;
}

bool GangMachine::NeedsSettling(const Gang& gang) const {
  return MayRunBeside(gang) && !gang.settled_here && !heat_.Settled(GpusOf(gang)).has_value();
}

bool GangMachine::NeedsSentinel(const Gang& gang) const {
  return MayRunBeside(gang) && !gang.sentinel_here &&
         sentinels_.Due(GpusOf(gang), gang.stack, gang.settled_here, now_);
}

// Behind a cell that has a figure, if there is a reading before it to compare with.
bool GangMachine::NeedsClosing(const Gang& gang, const AttemptReport& report) const {
  const bool ok = std::all_of(report.ranks.begin(), report.ranks.end(),
                              [](const RankReport& rank) { return rank.outcome == Outcome::kOk; });
  return gang.order.closing && ok && !shutting_down_ && MayRunBeside(gang) &&
         report.telemetry.Has(Field::kSentinelBefore);
}

void GangMachine::Proceed(Gang& gang) {
  if (NeedsSettling(gang)) {
    gang.settled_here = true;
    return RunBeside(gang, Side::kSettle, State::kBeside);
  }
  if (NeedsSentinel(gang)) {
    gang.sentinel_here = true;
    return RunBeside(gang, Side::kSentinel, State::kBeside);
  }
  StartRanks(gang);
}

void GangMachine::RunBeside(Gang& gang, Side side, State state) {
  gang.state = state;
  gang.progress.phase = SideName(side);
  SendProgress(gang);
  gang.next_progress = now_ + kSideProgressInterval;
  Emit(gang_action::RunSide{gang.order.attempt, side});
}

void GangMachine::StartRanks(Gang& gang) {
  gang.progress.phase.clear();
  NoteSettled(gang);
  NoteSentinel(gang);
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

void GangMachine::NoteSentinel(Gang& gang) const {
  if (!MayRunBeside(gang)) return;
  const auto reading = sentinels_.Last(GpusOf(gang), gang.stack);
  if (!reading) return;
  gang.telemetry.SetText(Field::kSentinelSeries, reading->series);
  gang.telemetry.Set(Field::kSentinelIndex, reading->index).IgnoreError();
  gang.telemetry.Set(Field::kSentinelBefore, reading->throughput).IgnoreError();
}

void GangMachine::On(const gang_event::SideEnded& event) {
  Gang* gang = FindGang(event.attempt);
  if (gang == nullptr || (gang->state != State::kBeside && gang->state != State::kClosing)) return;
  if (event.result.applies) {
    if (event.result.seconds > 0) heat_.NoteLoad(GpusOf(*gang), now_);
    if (event.side == Side::kSettle) OnSettled(*gang, event.result);
    if (event.side == Side::kSentinel) OnSentinel(*gang, event.result);
  } else {
    gang->nothing_beside = gang->nothing_beside || event.side == Side::kSettle;
  }
  if (gang->state == State::kClosing) {
    AttemptReport report = *std::move(gang->report);
    gangs_.erase(event.attempt);
    return Emit(gang_action::Finish{std::move(report)});
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

void GangMachine::OnSettled(Gang& gang, const SideResult& side) {
  const bool lasting = side.done || side.hopeless;
  if (lasting && !gang.ended_by) heat_.NoteSettled(GpusOf(gang), side.done);
  const auto set = [&](Field field, const std::optional<double>& value) {
    if (value) gang.telemetry.Set(field, *value).IgnoreError();
  };
  set(Field::kSettleSeconds, side.seconds);
  set(Field::kSettleBeginCelsius, side.begin_celsius);
  set(Field::kSettleEndCelsius, side.end_celsius);
  set(Field::kSettleCelsiusPerSecond, side.celsius_per_second);
  set(Field::kSettleClockRatioPerSecond, side.clock_ratio_per_second);
  if (!side.done && !gang.ended_by) {
    Emit(gang_action::Warn{"attempt " + gang.order.attempt + " is unsettled: " + side.why});
  }
}

void GangMachine::OnSentinel(Gang& gang, const SideResult& side) {
  if (gang.ended_by) return;
  sentinels_.Note(GpusOf(gang), gang.stack, gang.order.attempt, side.throughput, now_);
  if (!side.throughput) {
    return Emit(gang_action::Warn{"the sentinel of attempt " + gang.order.attempt +
                                  " has no figure: " + side.why});
  }
  if (gang.state == State::kClosing) {
    gang.report->telemetry.Set(Field::kSentinelAfter, *side.throughput).IgnoreError();
  }
}

void GangMachine::TickSide(Gang& gang) {
  if (now_ < gang.next_progress) return;
  SendProgress(gang);
  gang.next_progress = now_ + kSideProgressInterval;
}

}  // namespace assay
