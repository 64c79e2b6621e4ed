// AgentModel: a node with its agent. The agent's two machines are the real ones; what they lean on
// (processes, device locks, the spool, the wire) is a model of it, with the faults that such things
// have. Messages are those of the coordinator's own types, so that no wire format is in between.
#ifndef ASSAY_TESTS_UNIT_FLEET_MODEL_AGENT_MODEL_H_
#define ASSAY_TESTS_UNIT_FLEET_MODEL_AGENT_MODEL_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/cell/gang_machine.h"
#include "agent/session/session_machine.h"
#include "common/fleet/inventory.h"
#include "coordinator/cell/actions.h"
#include "tests/unit/fleet_model/coverage.h"
#include "tests/unit/fleet_model/dice.h"
#include "tests/unit/fleet_model/runner_process.h"

namespace assay::model {

class AgentModel;

// What lies outside of the node. Owned by the world.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  // A new stream; 0 where nobody answers.
  virtual SessionHandle Dial(AgentModel& agent) = 0;
  // The agent's end of it is closed.
  virtual void HangUp(SessionHandle stream) = 0;
  virtual void Up(SessionHandle stream, Event event) = 0;
  virtual void Spawned(const RunnerProcess& process) = 0;
  virtual void Ended(const RunnerProcess& process) = 0;
  // A report lies in the spool; it was acknowledged and is forgotten.
  virtual void Finished(const AttemptReport& report) = 0;
  virtual void Forgot(const std::string& attempt, const std::string& node) = 0;
};

class AgentModel {
 public:
  AgentModel(NodeInventory inventory, Surroundings& around, Dice& dice, Coverage& coverage);

  const std::string& name() const { return inventory_.node; }
  bool running() const { return session_ != nullptr; }
  bool paused() const { return paused_; }
  bool refused() const { return refused_; }  // it left for good, by the coordinator's word
  SessionHandle stream() const { return stream_; }
  const std::vector<RunnerProcess>& processes() const { return processes_; }
  bool HoldsNothing() const { return locks_.empty() && processes_.empty() && spool_.empty(); }
  std::optional<BootTime> NextDeadline() const;

  // The program begins; nothing where it runs.
  void Start(BootTime now);
  void Kill();              // -9
  void Reboot();            // the machine
  void Stop(BootTime now);  // SIGTERM
  void Pause() { paused_ = true; }
  void Resume() { paused_ = false; }
  // With faults its runners and its node have whims.
  void SetFaults(bool on) { faults_ = on; }
  // A device is lost or comes back; told to the coordinator. In a calm world all come back.
  void ChangeInventory();

  // Timers and processes, up to now.
  void Live(BootTime now);
  void Receive(const CoordinatorMessage& message, BootTime now);
  void OnClosed(SessionHandle stream, BootTime now);
  // Its machines' states as names of coverage, with `kind` before them.
  void NoteStates(const std::string& kind);

 private:
  void Perform(const std::vector<SessionAction>& actions, BootTime now);
  void Apply(const SessionAction& action, BootTime now);
  void SayHello();
  void Welcomed(const Welcome& welcome, BootTime now);
  void Post(GangEvent event, BootTime now);
  void Apply(const GangAction& action, BootTime now);
  void Acquire(const gang_action::Acquire& action, BootTime now);
  void Spawn(const gang_action::Spawn& action, BootTime now);
  void RunSide(const gang_action::RunSide& action, BootTime now);
  void StopSide(const gang_action::StopSide& action, BootTime now);
  void StopRank(const gang_action::StopRank& action, BootTime now);
  RunnerProcess ProcessOf(const PrepareOrder& order, const std::string& uuid, BootTime now);
  void Begin(RunnerProcess process);
  void Finish(const AttemptReport& report);
  void Send(const gang_action::Send& action);
  void Say(Event event) {
    if (stream_ != 0) around_.Up(stream_, std::move(event));
  }
  void SendReport(const AttemptReport& report);
  bool Busy(const std::string& uuid) const;
  void LiveProcesses(BootTime now);
  void NoteEndedSides(std::vector<GangEvent>& said);
  void EndProgram();

  NodeInventory inventory_;
  Surroundings& around_;
  Dice& dice_;
  Coverage& coverage_;
  bool faults_ = true;

  // Of the program.
  std::unique_ptr<SessionMachine> session_;
  std::unique_ptr<GangMachine> gangs_;
  SessionHandle stream_ = 0;
  bool dial_failed_ = false;
  bool paused_ = false;
  bool leaving_ = false;
  bool refused_ = false;
  bool vouches_ = false;
  std::string instance_;
  uint64_t hellos_ = 0;
  std::string session_state_ = "idle";
  std::vector<GangEvent> events_;
  std::vector<GangEvent> unread_;  // what its processes did while it was stopped
  bool draining_events_ = false;
  std::map<std::string, std::set<std::string>> locks_;  // attempt to UUIDs
  std::map<std::string, PrepareOrder> orders_;
  std::map<std::string, BootTime> probes_;  // test connects, until when
  std::map<std::string, std::string> gang_states_;
  std::map<std::string, Side> sides_;  // of attempts: what runs beside them
  std::set<std::string> in_memory_;    // reports that the disk did not take

  // Of the machine.
  std::vector<RunnerProcess> processes_;
  std::map<std::string, BootTime> lifelines_;  // of attempts: until when their runners wait
  std::map<std::string, AttemptReport> spool_;
  bool knows_folder_ = false;
  bool disk_full_ = false;
  std::chrono::nanoseconds lifeline_ = std::chrono::seconds(10);
};

}  // namespace assay::model

#endif  // ASSAY_TESTS_UNIT_FLEET_MODEL_AGENT_MODEL_H_
