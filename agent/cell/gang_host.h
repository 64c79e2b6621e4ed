// GangHost: carries out what GangMachine decides: locks, files, processes, telemetry.
//
// Owner: NodeAgent. Thread rule: the loop's thread; callbacks of GangOutbox come from it.
#ifndef ASSAY_AGENT_CELL_GANG_HOST_H_
#define ASSAY_AGENT_CELL_GANG_HOST_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/cell/gang_files.h"
#include "agent/cell/gang_machine.h"
#include "agent/cell/held_gang.h"
#include "agent/cell/ports.h"
#include "agent/cell/runner_environment.h"
#include "agent/process/deadline_timer.h"
#include "agent/process/event_loop.h"
#include "agent/process/orphan_reaper.h"
#include "common/clock/clock.h"

namespace assay {

class GangOutbox {
 public:
  virtual ~GangOutbox() = default;
  virtual void Send(const GangReady& message) = 0;
  virtual void Send(const GangRefused& message) = 0;
  virtual void Send(const RanksJoined& message) = 0;
  virtual void Send(const GangProgress& message) = 0;
  virtual void Report(AttemptReport report) = 0;
  // The list of held attempts changed.
  virtual void HeldChanged() = 0;
  // Before anything is decided: a lease that has ended meanwhile is said first. After this process
  // was stopped, what children did in between is read before the timer of the lease.
  virtual void CatchUp() = 0;
};

struct GangHostOptions {
  std::string node;
  std::string state_dir;
  std::string lock_dir;       // DeviceLockDir()
  std::string endpoint_host;  // numeric address on which rank 0's agent binds
  Environment environment;    // the agent's own
  std::function<std::string(const Device&)> card_name;  // the catalogue's name of a device
  bool pin = true;                                      // a rank to its GPU's NUMA node
  std::string sys_root = "/sys";                        // tests put a folder in its place
};

class GangHost {
 public:
  // All outlive this.
  GangHost(EventLoop& loop, OrphanReaper& reaper, const Clock& clock, const StackCatalog& stacks,
           DeviceTelemetry& telemetry, GangOutbox& outbox, GangHostOptions options);
  ~GangHost();

  // Ends what a killed agent left behind; then Post may be called.
  absl::Status Open();
  void SetInventory(const NodeInventory& inventory) { devices_ = inventory.devices; }
  void SetLifeline(std::chrono::nanoseconds lifeline) { lifeline_ = lifeline; }
  void SetEndpointHost(const std::string& host) { options_.endpoint_host = host; }

  void Post(const GangEvent& event);

  std::vector<std::string> HeldAttempts() const { return machine_.HeldAttempts(); }
  bool draining() const { return machine_.draining(); }
  // After Open: nothing of a killed agent's gangs is left, as far as this agent can know.
  bool former_gangs_ended() const { return former_gangs_ended_; }
  // True when nothing is held, and no process of any gang is left.
  bool Idle() const { return held_.empty(); }

 private:
  void Apply(const gang_action::Acquire& action);
  void Apply(const gang_action::Release& action);
  void Apply(const gang_action::Spawn& action);
  void Apply(const gang_action::RunSide& action);
  void Apply(const gang_action::StopSide& action);
  void Apply(const gang_action::StopRank& action);
  void Apply(const gang_action::WindowBegin& action);
  void Apply(const gang_action::WindowEnd& action);
  void Apply(const gang_action::Send& action);
  void Apply(const gang_action::Finish& action);
  void Apply(const gang_action::Warn& action);

  // The reason and sentence of a refusal, or nothing.
  struct Refusal {
    std::string reason, message;
  };
  std::optional<Refusal> TakeDevices(HeldGang& held);
  std::optional<Refusal> FindStack(HeldGang& held);
  std::optional<Refusal> MakeEndpoint(HeldGang& held);
  RankPlacement PlaceRank(const Device& device) const;
  CellFile CellOf(const HeldGang& held, const HeldRank& rank) const;
  // `name` sets files of the same attempt and rank apart.
  absl::StatusOr<ChildSpec> ChildOf(const HeldGang& held, const HeldRank& rank,
                                    const CellFile& cell, const std::string& name);
  absl::Status SpawnRank(HeldGang& held, HeldRank& rank, const std::string& endpoint);
  // What runs beside a cell (gang_host_side.cc).
  void LookAtSide(const std::string& attempt);
  void LookAtLoad(HeldGang& held);
  void LookAtSentinel(HeldGang& held);
  absl::Status StartSide(HeldGang& held);
  // Of the attempt's own ranks, before anything else runs on their GPUs. Again: nothing.
  static void FinishTelemetry(HeldGang& held);
  void Drain();
  const Device* FindDevice(const std::string& uuid) const;

  EventLoop& loop_;
  OrphanReaper& reaper_;
  const Clock& clock_;
  const StackCatalog& stacks_;
  DeviceTelemetry& telemetry_;
  GangOutbox& outbox_;
  GangHostOptions options_;
  GangFiles files_;
  GangMachine machine_;
  DeadlineTimer timer_;  // of machine_
  bool former_gangs_ended_ = false;
  std::vector<Device> devices_;
  std::chrono::nanoseconds lifeline_{std::chrono::seconds(10)};
  std::map<std::string, std::unique_ptr<HeldGang>> held_;
  std::vector<GangEvent> events_;  // in order of arrival; an action may cause one
  bool draining_events_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_GANG_HOST_H_
