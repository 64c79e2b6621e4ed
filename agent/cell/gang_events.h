// Events and actions of GangMachine. Plain values; every one names its attempt.
#ifndef ASSAY_AGENT_CELL_GANG_EVENTS_H_
#define ASSAY_AGENT_CELL_GANG_EVENTS_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/cell/messages.h"
#include "common/runner_protocol/record_parser.h"

namespace assay {

// One rank of a gang that this node runs.
struct LocalRank {
  uint32_t rank = 0;
  uint32_t local_rank = 0;
  std::string gpu_uuid;
};

// What a gang's GPUs run beside the cell itself: the load that brings them to their temperature,
// and the fixed cell by which they are compared with themselves.
enum class Side { kSettle, kSentinel };
// The phase that is shown meanwhile, and `purpose` in the cell file of its processes.
std::string_view SideName(Side side);

struct SideResult {
  bool applies = false;  // false: nothing such can be run (a processor, a simulated device)
  bool done = false;
  bool hopeless = false;  // not done, and trying again would change nothing
  double seconds = 0;     // 0 where nothing ran
  std::optional<double> begin_celsius, end_celsius;
  std::optional<double> celsius_per_second, clock_ratio_per_second;  // at the end
  std::optional<double> throughput;  // of the sentinel, all GPUs together
  std::string why;                   // not done: one sentence
};

namespace gang_event {

struct Offered {  // Prepare came
  PrepareOrder order;
};
struct Prepared {  // all that Acquire asked for is held
  std::string attempt;
  std::string endpoint;           // bound here, for the agent of rank 0 of a gang of several
  std::string stack_digest = {};  // of the programs behind the stack's name; "" where not known
};
struct PrepareFailed {  // nothing is held
  std::string attempt, reason, message;
};
struct Started {
  StartOrder order;
};
struct Aborted {
  AbortOrder order;
};
struct SpawnFailed {  // of this rank; RankGone does not follow
  std::string attempt;
  uint32_t rank = 0;
  std::string message;
};
struct RankRecord {
  std::string attempt;
  uint32_t rank = 0;
  record::Parsed record;
};
struct RankBroke {  // wrote what is no record
  std::string attempt;
  uint32_t rank = 0;
  std::string message;
};
struct RecordsClosed {
  std::string attempt;
  uint32_t rank = 0;
};
struct RankGone {  // reaped, its whole process tree with it
  std::string attempt;
  uint32_t rank = 0;
  int exit_code = -1;
  int signal = 0;
  std::string log_tail;
  bool oom_killed = false;
  bool device_is_cpu = false;
};
struct SideEnded {  // none of its processes is left
  std::string attempt;
  Side side = Side::kSettle;
  SideResult result;
};
struct Welcomed {  // a session began
  std::chrono::nanoseconds kill_grace{0};
  std::vector<std::string> unknown_attempts;
};
struct LeaseEnded {};
struct DrainSet {
  bool on = false;
};
struct Shutdown {};
struct Tick {};  // NextDeadline passed

}  // namespace gang_event

using GangEvent = std::variant<
    gang_event::Offered, gang_event::Prepared, gang_event::PrepareFailed, gang_event::Started,
    gang_event::Aborted, gang_event::SpawnFailed, gang_event::RankRecord, gang_event::RankBroke,
    gang_event::RecordsClosed, gang_event::RankGone, gang_event::SideEnded, gang_event::Welcomed,
    gang_event::LeaseEnded, gang_event::DrainSet, gang_event::Shutdown, gang_event::Tick>;

namespace gang_action {

// Lock the devices, look up the stack, check the disk, bind or try the endpoint; answer Prepared or
// PrepareFailed.
struct Acquire {
  PrepareOrder order;
  std::vector<LocalRank> ranks;
};
struct Release {  // nothing ran, nothing is reported
  std::string attempt;
};
struct Spawn {
  std::string attempt;
  std::string endpoint;
};
struct RunSide {  // answered by SideEnded
  std::string attempt;
  Side side = Side::kSettle;
};
struct StopSide {
  std::string attempt;
  std::chrono::nanoseconds grace{0};
};
struct StopRank {
  std::string attempt;
  uint32_t rank = 0;
  std::chrono::nanoseconds grace{0};
};
struct WindowBegin {
  std::string attempt;
};
struct WindowEnd {
  std::string attempt;
};
struct Send {
  std::variant<GangReady, GangRefused, RanksJoined, GangProgress> message;
};
// Every rank is gone: add the telemetry and the wall time, let go of the devices, keep the report
// in the spool and send it.
struct Finish {
  AttemptReport report;
};
struct Warn {
  std::string message;
};

}  // namespace gang_action

using GangAction = std::variant<gang_action::Acquire, gang_action::Release, gang_action::Spawn,
                                gang_action::RunSide, gang_action::StopSide, gang_action::StopRank,
                                gang_action::WindowBegin, gang_action::WindowEnd, gang_action::Send,
                                gang_action::Finish, gang_action::Warn>;

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_GANG_EVENTS_H_
