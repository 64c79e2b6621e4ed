// Actions: what the shells carry out after one Step, in the order of the fields of Actions.
//
// The state itself holds sends and replies back until their commit is durable (event::CommitDone),
// so a shell does at once whatever it is handed. `after_commit` is the commit that was waited for
// (0: none), for logs and tests.
#ifndef ASSAY_COORDINATOR_CELL_ACTIONS_H_
#define ASSAY_COORDINATOR_CELL_ACTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/cell/events.h"
#include "coordinator/cell/rows.h"

namespace assay {

// Messages to an agent: plain forms of proto/assay/v1/fleet_service.proto.
namespace message {

struct Welcome {
  uint64_t session_epoch = 0;
  uint32_t protocol = 1;
  double heartbeat_seconds = 0;
  double lease_seconds = 0;
  double lifeline_seconds = 0;
  double kill_grace_seconds = 0;
  std::vector<std::string> unknown_attempts;
};

struct Refuse {  // a CloseSession of the same session follows
  std::string reason;
  std::string message;
  bool retry = false;
};

struct HeartbeatAck {
  uint64_t number = 0;
};

struct Prepare {
  std::string attempt;
  std::string run;
  uint64_t cell = 0;
  uint32_t repeat = 1;
  Spec spec;
  std::string stack;
  std::vector<MemberRow> members;
  std::string endpoint;
  uint64_t seed = 0;
  double prepare_seconds = 0;
  bool closing = false;  // no more cells are pending than other GPUs could take
};

struct Start {
  std::string attempt;
  std::string endpoint;
  double join_seconds = 0;
};

struct Abort {
  std::string attempt;
  Outcome outcome = Outcome::kCancelled;
  std::string reason;
};

struct ReportAck {
  std::string attempt;
};

struct Drain {
  bool on = true;
};

struct DoctorQuestion {
  uint64_t number = 0;
};

}  // namespace message

using CoordinatorMessage =
    std::variant<message::Welcome, message::Refuse, message::HeartbeatAck, message::Prepare,
                 message::Start, message::Abort, message::ReportAck, message::Drain,
                 message::DoctorQuestion>;

// Give `batch` to the store as commit n; answer with CommitDone{n} or CommitFailed. Numbers grow
// by one; batches are committed in this order and may be grouped.
struct Persist {
  uint64_t n = 0;
  Batch batch;
};

struct SendToAgent {
  SessionHandle session = 0;
  CoordinatorMessage message;
  uint64_t after_commit = 0;
};

// After the sends of the same Actions.
struct CloseSession {
  SessionHandle session = 0;
};

struct SubmitReply {  // of SubmitRun and Rerun
  std::string run;
  uint64_t cells = 0;
  uint64_t specs = 0;
  bool continued = false;
  std::vector<std::string> warnings;
};
struct CancelReply {
  std::string run;
  RunState state = RunState::kCancelling;
};
struct ImportReply {
  std::vector<std::string> runs;
  uint64_t attempts_new = 0;
  uint64_t attempts_known = 0;
};
// A cell that a node holds: an attempt that is being started, that runs or that is being ended.
struct HeldCell {
  std::string attempt;
  std::string run;
  uint64_t cell = 0;
  std::string label;  // "resnet50 train amp-fp16 b64 eager" and the target
};
struct DrainReply {
  std::string node;
  std::string state;           // as AgentView::state
  std::vector<HeldCell> held;  // what the node still has
};

struct DoctorReply {
  DoctorReport report;
};

using ReplyBody =
    std::variant<std::monostate, SubmitReply, CancelReply, ImportReply, DrainReply, DoctorReply>;

// Not OK: NotFound, FailedPrecondition, InvalidArgument with one sentence fit to be printed.
struct Reply {
  ReplyToken token = 0;
  absl::Status status;
  ReplyBody body;
  uint64_t after_commit = 0;
};

struct Actions {
  std::optional<Persist> persist;
  std::vector<SendToAgent> sends;
  std::vector<CloseSession> closes;
  std::vector<Reply> replies;
  // Runs whose view changed; each named once. The watcher shell limits its own rate.
  std::vector<std::string> notify_runs;
  // Set once, after a failed commit: no send or reply ever follows. The coordinator writes this
  // sentence to standard error and exits 1.
  std::optional<std::string> halt;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_CELL_ACTIONS_H_
