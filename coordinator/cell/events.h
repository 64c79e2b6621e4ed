// Events: everything that can happen to the coordinator's state. The shells (sessions, API, store,
// timer) post them to the state thread, which gives them to CoordinatorState::Step one at a time.
//
// Messages of agents are the plain forms of proto/assay/v1/fleet_service.proto, which says what
// each field means; nothing in them is trusted.
#ifndef ASSAY_COORDINATOR_CELL_EVENTS_H_
#define ASSAY_COORDINATOR_CELL_EVENTS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/doctor/doctor_report.h"
#include "common/fleet/inventory.h"
#include "common/matrix/matrix.h"
#include "coordinator/cell/rows.h"

namespace assay {

// Names one stream of an agent. Made by the session shell, never used twice in a process; from 1.
using SessionHandle = uint64_t;
// Names a question of the API that waits for a Reply. Made by the API shell; from 1.
using ReplyToken = uint64_t;

namespace event {

// --- of users; each is answered by exactly one Reply with its token.

// A checked and expanded matrix. Answered with SubmitReply once durable.
struct SubmitRun {
  ReplyToken token = 0;
  std::string request_id;
  std::string yaml;
  std::string file_name;
  std::string digest;  // SHA-256 of yaml
  bool force_new = false;
  std::string user;  // by certificate; empty without one
  Labels labels;     // checked
  Slice slice;       // checked
  // Full id of an unfinished run: go on with that one and nothing else (run --resume).
  std::string resumed;
  Matrix matrix;  // matrix.specs[i].index == i
};

struct CancelRun {
  ReplyToken token = 0;
  std::string run;  // full id
};

// Opens an ended run again. failed_only: cells that are fail, hung, timeout, lost or cancelled, and
// those of `invalid`, whose figure the rules do not believe; else all. `loaded` is the run as the
// store has it; needed since ended runs are not in memory.
struct Rerun {
  ReplyToken token = 0;
  std::string run;  // full id
  bool failed_only = true;
  std::string request_id;
  std::optional<RunSnapshot> loaded;
  std::set<uint64_t> invalid;  // by number
};

// Rows of a merged file. Refused while one of its runs is unfinished here.
struct ImportRows {
  ReplyToken token = 0;
  Batch::Import rows;
};

// `on` false ends the draining. Running cells go on; no new one is offered.
struct DrainNode {
  ReplyToken token = 0;
  std::string node;
  bool on = true;
};

// Answered with DoctorReply when the agent of the node has looked at it.
struct AskDoctor {
  ReplyToken token = 0;
  std::string node;
};

// --- of agents

struct AgentHello {
  SessionHandle session = 0;
  std::string address;  // of the peer, for messages
  uint32_t protocol = 1;
  std::string instance;
  NodeInventory inventory;
  std::vector<std::string> held_attempts;
  std::vector<std::string> spooled_attempts;
  bool draining = false;
  bool former_gangs_ended = false;
  bool answers_doctor = false;
  uint64_t ordinal = 0;  // of the hellos of its instance; 0: not said
};

// The stream ended, for whatever reason. Posted once for each session that said hello.
struct AgentGone {
  SessionHandle session = 0;
};

struct Heartbeat {
  SessionHandle session = 0;
  uint64_t number = 0;
  std::vector<std::string> held_attempts;
  bool draining = false;
  int64_t wall_unix_ms = 0;  // 0: not said
};

struct InventoryChanged {
  SessionHandle session = 0;
  NodeInventory inventory;
};

struct GangReady {
  SessionHandle session = 0;
  std::string attempt;
  std::string endpoint;
};

struct GangRefused {
  SessionHandle session = 0;
  std::string attempt;
  std::string reason;
  std::string message;
};

struct RanksJoined {
  SessionHandle session = 0;
  std::string attempt;
  std::vector<uint32_t> ranks;
};

struct Progress {
  SessionHandle session = 0;
  std::string attempt;
  std::string phase;
  uint64_t step = 0;
  double throughput = 0;
  double seconds_left = 0;
};

struct RankReport {
  uint32_t rank = 0;
  std::string gpu_uuid;
  Outcome outcome = Outcome::kFail;
  std::string reason;
  std::string message;
  int exit_code = 0;
  int signal = 0;
  Record fields;
  std::string log_tail;
  bool joined = false;
};

struct AttemptReport {
  SessionHandle session = 0;
  std::string attempt;
  std::string run;
  uint64_t cell = 0;
  std::string node;
  std::vector<RankReport> ranks;
  Record telemetry;
  int64_t started_at_unix_ms = 0;
  double seconds = 0;
};

struct Leave {
  SessionHandle session = 0;
  std::string reason;
};

struct DoctorAnswer {
  SessionHandle session = 0;
  uint64_t number = 0;
  DoctorReport report;
  std::string error;  // one sentence where there is no report
};

// --- of the store and the timer

// Batch n and all before it are durable. The counts are those of an import in batch n.
struct CommitDone {
  uint64_t n = 0;
  uint64_t attempts_new = 0;
  uint64_t attempts_known = 0;
};

// The store refuses further work; the answer is Actions::halt.
struct CommitFailed {
  std::string message;
};

// At least once a second while anything is unfinished or connected; four a second reads better.
struct Tick {};

}  // namespace event

using Event =
    std::variant<event::SubmitRun, event::CancelRun, event::Rerun, event::ImportRows,
                 event::DrainNode, event::AgentHello, event::AgentGone, event::Heartbeat,
                 event::InventoryChanged, event::GangReady, event::GangRefused, event::RanksJoined,
                 event::Progress, event::AttemptReport, event::Leave, event::AskDoctor,
                 event::DoctorAnswer, event::CommitDone, event::CommitFailed, event::Tick>;

}  // namespace assay

#endif  // ASSAY_COORDINATOR_CELL_EVENTS_H_
