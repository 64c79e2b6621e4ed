// RunnerProcess: a runner as far as its agent can tell: what it says, and when it is gone.
#ifndef ASSAY_TESTS_UNIT_FLEET_MODEL_RUNNER_PROCESS_H_
#define ASSAY_TESTS_UNIT_FLEET_MODEL_RUNNER_PROCESS_H_

#include <optional>
#include <string>
#include <vector>

#include "agent/cell/gang_events.h"
#include "common/clock/clock.h"
#include "tests/unit/fleet_model/dice.h"

namespace assay::model {

enum class Manner {
  kSound,
  kOutOfMemory,
  kCrash,
  kGpuGone,
  kGarbage,
  kClosesRecords,  // and lives on
  kSilent,         // after its hello
  kNeverJoins,     // and says so again and again
  kMumbles,        // joined, then says nothing that the agent passes on
  kTalks,          // progress for ever
  kHangsAtExit,    // after a sound result
};

// Sound mostly; in a calm world always.
Manner RandomManner(Dice& dice, bool faults);

struct RunnerProcess {
  std::string attempt;
  std::string run;
  uint64_t cell = 0;
  uint32_t rank = 0;
  std::string uuid;
  Manner manner = Manner::kSound;
  bool beside = false;    // a load or a sentinel: its agent hears nothing of it but its end
  bool stubborn = false;  // takes no notice of SIGTERM
  int said = 0;
  BootTime next = BootTime::max();  // when it says something
  std::optional<BootTime> dies;
  int exit_code = 0;
  int signal = 0;

  // Everything that is due by `now`, and the end of the process where that is due: RankGone last.
  void Live(BootTime now, Dice& dice, std::vector<GangEvent>& events);
  bool gone = false;
  bool said_ok = false;

 private:
  std::optional<GangEvent> Say(BootTime now);
  GangEvent Record(record::Parsed record) const;
  void Exit(BootTime when, int code, int by_signal = 0);
};

}  // namespace assay::model

#endif  // ASSAY_TESTS_UNIT_FLEET_MODEL_RUNNER_PROCESS_H_
