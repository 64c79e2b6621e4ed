// Gang: one attempt while it is alive, over any number of agents.
//
//   kPrepareFirst   Prepare is with the agent of rank 0, which binds the endpoint
//   kPrepareOthers  Prepare with that endpoint is with the others, which test the connection
//   kStarted        Start was given out after its row was durable; ranks join, run and report
//   kEnding         Abort was sent; reports are awaited
// Up to kPrepareOthers nothing runs and nothing is stored: such a gang is released without a trace.
#ifndef ASSAY_COORDINATOR_SCHEDULER_GANG_H_
#define ASSAY_COORDINATOR_SCHEDULER_GANG_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock/clock.h"
#include "coordinator/cell/events.h"
#include "coordinator/cell/merge.h"
#include "coordinator/cell/rows.h"

namespace assay {

enum class GangPhase { kPrepareFirst, kPrepareOthers, kStarted, kEnding };

// One agent's part of a gang.
struct GangPart {
  std::string node;
  std::vector<uint32_t> ranks;
  bool asked = false;  // has a Prepare
  bool ready = false;
  std::optional<event::AttemptReport> report;
  bool spooled = false;  // its agent said that the report follows
  bool gone = false;     // will not report: the agent was lost, or holds the attempt no longer
  int absent = 0;        // heartbeats in a row that did not name the attempt
  // A new instance of the agent does not hold it: its runners are dead by then at the latest.
  std::optional<BootTime> gone_at;
  bool Settled() const { return report.has_value() || gone; }
};

struct Gang {
  std::string run;
  uint64_t cell = 0;
  AttemptRow row;               // id, members and the like are set from the first
  std::vector<GangPart> parts;  // that of rank 0 first
  GangPhase phase = GangPhase::kPrepareFirst;
  std::string endpoint;
  BootTime begun{};                  // of the phase
  std::optional<BootTime> deadline;  // of the phase; none while started and joined
  BootTime started{};                // when Start was decided
  // From which the cell's own limit runs: later than `started` by what ran beside it.
  BootTime limit_from{};
  std::chrono::nanoseconds beside{0};    // spent so
  std::optional<BootTime> beside_since;  // the last word that something runs beside
  BootTime last_sign{};                  // latest word of any agent about it
  std::set<uint32_t> joined;
  bool all_joined = false;
  std::optional<Decision> decided;
  event::Progress progress;  // the newest
  bool Started() const { return phase == GangPhase::kStarted || phase == GangPhase::kEnding; }
  GangPart* PartOf(std::string_view node) {
    for (GangPart& part : parts) {
      if (part.node == node) return &part;
    }
    return nullptr;
  }
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_SCHEDULER_GANG_H_
