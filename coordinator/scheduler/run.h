// Run: one unfinished run in memory: its cells, what is pending and where that could go, counts.
//
// Cells wait in queues by place, so that finding the next one costs by the number of places (tens),
// not of cells (tens of thousands). State thread only.
#ifndef ASSAY_COORDINATOR_SCHEDULER_RUN_H_
#define ASSAY_COORDINATOR_SCHEDULER_RUN_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "coordinator/cell/rows.h"
#include "coordinator/scheduler/coordinator_state.h"
#include "coordinator/scheduler/fleet.h"
#include "coordinator/scheduler/place.h"

namespace assay {

// Cells that can go to the same nodes. `avoid`: nodes on which they failed, while there are others.
struct QueueKey {
  uint32_t place = 0;
  std::vector<std::string> avoid;
  friend auto operator<=>(const QueueKey&, const QueueKey&) = default;
};

struct Cell {
  CellRow row;
  uint32_t group = 0;
  std::string live_attempt;            // gang that has it now; empty: none
  std::vector<std::string> failed_on;  // nodes of attempts that are tried again
  std::array<uint32_t, 9> tries{};     // ended attempts since first_attempt, by outcome
  int refusals = 0;                    // in a row, busy GPUs aside
  std::optional<QueueKey> queued;      // set while it waits in a queue
  bool Pending() const { return !row.outcome.has_value() && live_attempt.empty(); }
};

// The repeats of one spec on one target.
struct Group {
  uint32_t spec = 0;
  uint32_t target = 0;
  std::vector<uint64_t> cells;
  uint32_t pending = 0;           // cells that wait
  uint32_t open = 0;              // cells without an outcome
  bool admitted = false;          // there was once a place for it
  std::optional<uint32_t> place;  // into Run::places
  bool absent = false;            // while without a place: no connected node has the target
  std::string reason, message;    // while without a place: why
  std::optional<BootTime> without_place_since;
};

struct KnownAttempt {
  uint64_t cell = 0;
  uint32_t number = 0;
  std::set<std::string> nodes;  // of its members
  bool IsOf(const std::string& node) const { return nodes.contains(node); }
};

class Run {
 public:
  Run(RunRow row, std::vector<Spec> specs, const CoordinatorDeps& deps);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  RunRow row;
  const std::vector<Spec> specs;
  std::vector<Target> targets;
  std::vector<Group> groups;  // targets x specs
  std::vector<Cell> cells;    // by number, which has gaps in a slice of a matrix
  std::vector<Place> places;
  std::map<QueueKey, std::set<std::pair<uint64_t, uint64_t>>> queues;  // (order, cell)
  std::vector<uint32_t> placeless;  // groups with pending cells and no place
  uint64_t pending = 0;
  std::set<std::string> gangs;  // attempts
  std::map<std::string, uint64_t> outcomes;
  std::vector<EndedCell> ended;  // in the order in which they ended, since this process began
  std::unordered_set<std::string> reported;  // ended attempts all of whose ranks reported
  std::unordered_map<std::string, KnownAttempt> attempts;  // started ones
  BootTime bind_deadline{};
  BootTime first_agent_deadline{};
  std::optional<BootTime> limit;  // once a cell has started, where the matrix sets a limit
  double ended_seconds = 0;       // of attempts that ended, by the boot clock
  uint64_t ended_attempts = 0;
  double pending_bound_seconds = 0;  // sum of max_seconds over pending cells
  PlaceFinder finder;

  void NoteAttempt(const AttemptRow& attempt);

  // A cell starts, or was running when this process began: `limit` counts from the first.
  void NoteRunning(BootTime now);

  Cell* FindCell(uint64_t number);
  // Of a number that is known to exist.
  Cell& CellAt(uint64_t number) { return *FindCell(number); }
  const Cell& CellAt(uint64_t number) const { return *const_cast<Run*>(this)->FindCell(number); }
  const Spec& SpecOf(const Cell& cell) const { return specs[cell.row.spec_index]; }
  bool HasTarget(const Target& target) const { return target_index_.contains(target); }

  // Makes the cells of every spec of the slice and repeat on a new target, pending and in no queue
  // yet.
  void AddTarget(const Target& target);
  // Takes over a stored cell. Cells come in the order of their numbers; false for one that does not
  // fit (out of order, an unknown spec), which the caller reports.
  bool AdoptCell(CellRow stored);

  // Finds the places of all groups again and puts every pending cell in its queue.
  void FindPlaces(const Fleet& fleet, BootTime now);
  void Enqueue(Cell& cell);
  void Dequeue(Cell& cell);

  // From pending to live, and back.
  void TakePending(Cell& cell, const std::string& attempt);
  void GiveBack(Cell& cell);
  // The one terminal state of a cell.
  void End(Cell& cell, Outcome outcome, std::string_view reason, std::string_view message,
           const AttemptRow* counted);
  // Opens an ended cell again (rerun).
  void Reopen(Cell& cell);

 private:
  void CountPending(Cell& cell, int by);
  std::map<Target, uint32_t> target_index_;
};

// Place of a cell in the run's order: all of repeat 1 before repeat 2, shuffled within a repeat by
// the recorded seed, so that drift of the machine spreads over specs instead of biasing the last.
// A pure function of its arguments: the same after a restart and on every machine.
uint64_t CellOrder(uint64_t seed, uint32_t repeat, uint32_t spec_index, std::string_view target);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_SCHEDULER_RUN_H_
