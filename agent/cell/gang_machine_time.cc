// GangMachine's deadlines and what it tells of progress: see gang_machine.h.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/cell/gang_machine.h"
#include "agent/cell/rank_result.h"

namespace assay {

using std::chrono::nanoseconds;

nanoseconds GangMachine::SilenceLimit(const Gang& gang) const {
  return SafeSeconds(gang.order.spec.limits.no_step_seconds, 120);
}

void GangMachine::On(const gang_event::Tick&) {
  for (const std::string& attempt : HeldAttempts()) {
    Gang& gang = gangs_.at(attempt);
    if (gang.state == State::kRunning) {
      TickGang(gang);
    } else if (gang.state == State::kBeside || gang.state == State::kClosing) {
      TickSide(gang);
    } else if (now_ >= gang.give_up) {
      gangs_.erase(attempt);
      Emit(gang_action::Release{attempt});
    }
  }
}

void GangMachine::TickGang(Gang& gang) {
  for (size_t index = 0; index < gang.ranks.size(); ++index) TickRank(gang, index);
  if (now_ >= gang.cell_limit) {
    const Diagnosis limit{Outcome::kTimeout, reason::kCellLimit,
                          fmt::format("the cell did not end within its limit of {:g} s",
                                      gang.order.spec.limits.cell_seconds)};
    StopAll(gang, limit);
  }
  if (gang.end_peers && now_ >= *gang.end_peers) {
    gang.end_peers.reset();
    Diagnosis cause = *gang.first_cause;
    cause.message = PeerMessage(gang.ranks[*gang.first_failed].place, *gang.first_cause);
    StopAll(gang, cause);
  }
  if (gang.progress_waits && now_ >= gang.next_progress) SendProgress(gang);
}

void GangMachine::TickRank(Gang& gang, size_t index) {
  Rank& rank = gang.ranks[index];
  if (rank.gone || rank.stopped) return;
  if (rank.result_at) {
    if (now_ < *rank.result_at + kExitGrace) return;
    Emit(gang_action::Warn{fmt::format("attempt {} rank {} did not exit after its result; ended",
                                       gang.order.attempt, rank.place.rank)});
    return Stop(gang, index, {});
  }
  if (rank.closed_at && now_ >= *rank.closed_at + kRecordsClosedGrace) {
    return Broke(gang, index, "the runner closed its records before it wrote a result");
  }
  if (now_ < rank.last_sign + SilenceLimit(gang)) return;
  const Diagnosis hung{Outcome::kHung, reason::kNoProgress,
                       SilenceMessage(gang.order.spec.limits.no_step_seconds, gang.progress.phase,
                                      gang.order.members.size())};
  Fail(gang, index, hung);
  Stop(gang, index, hung);
}

std::optional<BootTime> GangMachine::NextDeadline() const {
  std::optional<BootTime> next;
  const auto consider = [&next](BootTime when) {
    if (!next || when < *next) next = when;
  };
  for (const auto& [attempt, gang] : gangs_) {
    if (gang.state != State::kRunning) {
      const bool beside = gang.state == State::kBeside || gang.state == State::kClosing;
      consider(beside ? gang.next_progress : gang.give_up);
      continue;
    }
    bool any_to_stop = false;
    for (const Rank& rank : gang.ranks) {
      if (rank.gone || rank.stopped) continue;
      any_to_stop = true;
      if (rank.result_at) {
        consider(*rank.result_at + kExitGrace);
        continue;
      }
      if (rank.closed_at) consider(*rank.closed_at + kRecordsClosedGrace);
      consider(rank.last_sign + SilenceLimit(gang));
    }
    if (any_to_stop) consider(gang.cell_limit);
    if (any_to_stop && gang.end_peers) consider(*gang.end_peers);
    if (gang.progress_waits) consider(gang.next_progress);
  }
  return next;
}

void GangMachine::NoteProgress(Gang& gang) {
  gang.progress_waits = gang.ranks.front().place.rank == 0;
  if (gang.progress_waits && now_ >= gang.next_progress) SendProgress(gang);
}

void GangMachine::SendProgress(Gang& gang) {
  gang.progress_waits = false;
  gang.next_progress = now_ + kProgressInterval;
  Emit(gang_action::Send{gang.progress});
}

}  // namespace assay
