#include "tests/unit/fleet_model/runner_process.h"

#include <csignal>

namespace assay::model {

using std::chrono::milliseconds;
using std::chrono::seconds;

Manner RandomManner(Dice& dice, bool faults) {
  if (!faults || dice.OneIn(2)) return Manner::kSound;
  constexpr Manner kOthers[] = {Manner::kOutOfMemory, Manner::kCrash,         Manner::kGpuGone,
                                Manner::kGarbage,     Manner::kClosesRecords, Manner::kSilent,
                                Manner::kNeverJoins,  Manner::kMumbles,       Manner::kTalks,
                                Manner::kHangsAtExit};
  return kOthers[dice.Roll(std::size(kOthers))];
}

GangEvent RunnerProcess::Record(record::Parsed record) const {
  return gang_event::RankRecord{attempt, rank, std::move(record)};
}

void RunnerProcess::Exit(BootTime when, int code, int by_signal) {
  dies = when;
  exit_code = code;
  signal = by_signal;
}

// The next thing it says. Each manner begins alike, as a runner does.
std::optional<GangEvent> RunnerProcess::Say(BootTime now) {
  const int step = said++;
  if (step == 0) {
    return Record(record::Hello{1, "assay-train", "0.1.0", 1, uuid});
  }
  if (manner == Manner::kSilent) return std::nullopt;
  if (manner == Manner::kNeverJoins) return Record(record::Phase{"load"});
  if (step == 1) return Record(record::Joined{});
  if (manner == Manner::kMumbles) return Record(record::Joined{});
  if (step == 2 || manner == Manner::kTalks) {
    if (step == 2) return Record(record::Phase{"measure"});
    return Record(record::Progress{step, 800.0, 1.0});
  }
  switch (manner) {
    case Manner::kOutOfMemory:
      Exit(now, 3);
      return Record(record::Result{"mem_limit", "out_of_memory", "no room", {}});
    case Manner::kGpuGone:
      Exit(now, 1);
      return Record(record::Result{"fail", "gpu_gone", "fell off the bus", {}});
    case Manner::kCrash:
      Exit(now, -1, SIGSEGV);
      return std::nullopt;
    case Manner::kGarbage:
      return gang_event::RankBroke{attempt, rank, "that is no record"};
    case Manner::kClosesRecords:
      if (step > 3) return std::nullopt;
      return gang_event::RecordsClosed{attempt, rank};
    default:
      break;
  }
  if (step == 3) return Record(record::Progress{1, 800.0, 1.0});
  if (step > 4) return std::nullopt;
  said_ok = true;
  if (manner == Manner::kSound) Exit(now, 0);
  return Record(record::Result{
      "ok", "", "", {{"throughput", 800.0}, {"samples", int64_t{8000}}, {"seconds", 10.0}}});
}

void RunnerProcess::Live(BootTime now, Dice& dice, std::vector<GangEvent>& events) {
  while (!gone && next <= now && !(dies && *dies <= next)) {
    const BootTime when = next;
    next += dice.Between(milliseconds(200), milliseconds(4000));
    if (std::optional<GangEvent> event = Say(when)) events.push_back(std::move(*event));
  }
  if (gone || !dies || *dies > now) return;
  gone = true;
  if (beside) return;
  if (dice.OneIn(2)) events.push_back(gang_event::RecordsClosed{attempt, rank});
  events.push_back(
      gang_event::RankGone{attempt, rank, exit_code, signal, "the last words", false, false});
}

}  // namespace assay::model
