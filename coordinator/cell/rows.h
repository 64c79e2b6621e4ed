// Rows: what the coordinator's store keeps, as plain types.
//
// Owner: the state thread makes them (coordinator/scheduler), the store thread writes and reads
// them. Values only, no behaviour. Wall-clock times are for showing; no duration comes from them.
#ifndef ASSAY_COORDINATOR_CELL_ROWS_H_
#define ASSAY_COORDINATOR_CELL_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/labels/labels.h"
#include "common/matrix/matrix.h"
#include "common/matrix/slice.h"
#include "common/matrix/spec.h"
#include "common/results/outcome.h"
#include "common/results/record.h"

namespace assay {

// waiting: no attempt has started yet. cancelling: asked to stop, processes may still live. done
// and cancelled: ended, no process of the run is alive.
enum class RunState { kWaiting, kRunning, kCancelling, kDone, kCancelled };
std::string_view RunStateName(RunState state);  // "waiting", ...
std::optional<RunState> RunStateFromName(std::string_view name);
inline bool IsEnded(RunState s) { return s == RunState::kDone || s == RunState::kCancelled; }

// The reverse of PlacementName (common/matrix/matrix.h).
std::optional<Placement> PlacementFromName(std::string_view name);

struct RunRow {
  std::string id;  // ULID; primary key
  std::string request_id;
  std::string name;
  std::string digest;  // SHA-256 of the matrix text
  std::string yaml;
  std::string file_name;
  std::string baseline;
  Selection select;
  uint32_t repeat = 3;
  uint64_t specs = 0;
  uint64_t seed = 0;  // of the shuffled order; below 2^63
  RunState state = RunState::kWaiting;
  std::string message;  // why it ended with less than was asked; empty else
  bool binding_closed = false;
  uint64_t cells = 0;            // bound so far
  uint32_t generation = 1;       // grows when an ended run is opened again
  std::string rerun_request_id;  // of the latest rerun
  std::string submitted_by;      // the user's name by certificate; empty without one
  Labels labels;
  Slice slice;  // of merged slices that of the first
  int64_t submitted_at_unix_ms = 0;
  int64_t started_at_unix_ms = 0;  // first Start; 0 before
  int64_t ended_at_unix_ms = 0;    // 0 before
};

// Primary key (run, spec.index).
struct SpecRow {
  std::string run;
  Spec spec;
};

// A cell is pending while it has no outcome and no attempt in state `started`.
// Primary key (run, cell).
struct CellRow {
  std::string run;
  uint64_t cell = 0;  // from 1, in the order of binding; with gaps in a slice (Slice::NextCell)
  uint32_t spec_index = 0;
  uint32_t repeat = 1;         // from 1
  std::string target;          // card, node or GPU UUID, as the run's placement says
  bool simulated = false;      // targets of simulated and of real devices are told apart by this
  uint64_t order = 0;          // place in the run's shuffled, repeat-major order
  bool admitted = false;       // there was once a place that could run it
  uint32_t attempts = 0;       // started so far
  uint32_t first_attempt = 1;  // number from which retries count: moved on by a rerun
  std::optional<Outcome> outcome;  // the one terminal state
  std::string reason;
  std::string message;
  std::string counted_attempt;  // empty where the outcome needed none
};

struct MemberRow {  // of a gang, in rank order
  std::string node;
  std::string gpu_uuid;
  uint32_t local_rank = 0;
};

enum class AttemptState { kStarted, kEnded };

// Written when the gang is about to start and again when it ended. Primary key id.
struct AttemptRow {
  std::string id;  // ULID
  std::string run;
  uint64_t cell = 0;
  uint32_t number = 0;  // of the cell, from 1; 0 where not known (late)
  AttemptState state = AttemptState::kStarted;
  std::string node;  // of rank 0
  std::string card;
  std::string stack;
  std::string runner;  // program of the stack
  std::vector<MemberRow> members;
  bool simulated = false;
  uint64_t seed = 0;
  int64_t started_at_unix_ms = 0;  // the node's wall clock once reported, else the coordinator's
  double seconds = 0;              // the node's steady clock; 0 where not reported
  std::optional<Outcome> outcome;
  std::string reason;
  std::string message;
  bool counted = false;   // at most one attempt of a cell
  bool late = false;      // its report came after it had been given up
  bool reported = false;  // every rank of it reported
  Record record;          // complete: plan, cell, runner and agent fields
  std::string log_tail;   // of the rank that decided
  std::string cell_file;  // JSON given to the runner of rank 0
};

// Primary key node.
struct NodeRow {
  std::string node;
  uint64_t session_epoch = 0;
  std::string machine_id;
  std::string boot_id;
  std::string instance;
  std::string address;
  int64_t last_hello_unix_ms = 0;
  bool draining = false;  // a user said so; stands until a user takes it back
};

// Rows to write in one transaction.
// What is said of an attempt that counts, given up before it reported.
inline std::string LateNote(Outcome outcome) {
  return "; later it reported " + std::string(OutcomeName(outcome)) + ", which does not count";
}

struct Batch {
  // Insert or replace by primary key.
  std::vector<RunRow> runs;
  std::vector<SpecRow> specs;
  std::vector<CellRow> cells;
  std::vector<AttemptRow> attempts;
  std::vector<NodeRow> nodes;
  // Ids of attempts that no longer count: their cells are run again (rerun). An update of `counted`
  // alone, made before `attempts` are written.
  std::vector<std::string> uncounted_attempts;
  // Reports of attempts whose run is not in memory any more. Insert where absent, if the run is in
  // the store; where the stored attempt is not counted, late or reported, take over outcome,
  // reason, message, record, log_tail, seconds and late, and keep the rest. One that counts and was
  // not reported stays what it is, gets reported, and its message LateNote. Of a node that is no
  // member of the stored attempt nothing is taken.
  std::vector<AttemptRow> late_attempts;
  // A merged file. Insert where absent, by primary key. Of two cells the one whose outcome is worth
  // more counts: ok, mem_limit, unsupported, a failure, cancelled, none; of equal ones that of the
  // later rerun (first_attempt, attempts), then that of the earlier counted attempt, and last the
  // smaller reason and message. So any order of merging, at any site, comes to the same.
  struct Import {
    std::vector<RunRow> runs;
    std::vector<SpecRow> specs;
    std::vector<CellRow> cells;
    std::vector<AttemptRow> attempts;
  };
  std::optional<Import> import;

  bool Empty() const {
    return runs.empty() && specs.empty() && cells.empty() && attempts.empty() && nodes.empty() &&
           uncounted_attempts.empty() && late_attempts.empty() && !import.has_value();
  }
};

// One run in full: all specs, all cells, and the attempts (records and log tails of ended attempts
// may be left out; nothing here reads them).
struct RunSnapshot {
  RunRow run;
  std::vector<Spec> specs;     // by index
  std::vector<CellRow> cells;  // by cell
  std::vector<AttemptRow> attempts;
};

// What is kept in memory of a run that ended.
struct EndedRun {
  std::string id;
  std::string request_id;
  std::string digest;
  RunState state = RunState::kDone;
  uint64_t cells = 0;
  uint64_t specs = 0;
  uint32_t generation = 1;
  std::string rerun_request_id;
};

// All that the state thread needs at start.
struct StateSnapshot {
  std::vector<RunSnapshot> unfinished;
  std::vector<EndedRun> ended;
  std::vector<NodeRow> nodes;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_CELL_ROWS_H_
