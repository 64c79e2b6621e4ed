// NodeAgent: the agent without main and without gRPC: session, gangs and spool put together.
//
// Owner: main, or a test. Thread rule: the loop's thread.
#ifndef ASSAY_AGENT_SESSION_NODE_AGENT_H_
#define ASSAY_AGENT_SESSION_NODE_AGENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/cell/gang_host.h"
#include "agent/cell/ports.h"
#include "agent/process/deadline_timer.h"
#include "agent/process/event_loop.h"
#include "agent/process/orphan_reaper.h"
#include "agent/session/doctor_child.h"
#include "agent/session/fleet_stream.h"
#include "agent/session/out_queue.h"
#include "agent/session/session_machine.h"
#include "agent/spool/report_spool.h"
#include "common/clock/clock.h"

namespace assay {

struct NodeAgentOptions {
  GangHostOptions host;  // node and state_dir among them
  std::string instance;  // ULID
  uint64_t seed = 0;     // of jitter
  // An AttemptReport as the wire's bytes.
  std::function<std::string(const AttemptReport&)> encode;
  // Called when a session begins, for the address on which rank 0's agent binds; may be empty.
  std::function<std::string()> endpoint_host;
  DoctorChildOptions doctor;
};

// After SIGTERM, with every gang gone: for the acknowledgement of the last reports, which the spool
// keeps anyway.
inline constexpr std::chrono::milliseconds kLastAckWait{1000};

class NodeAgent final : private GangOutbox, private FleetStreamObserver {
 public:
  // All outlive this. `on_exit` is called once with the exit code: 0 after Shutdown, 2 when the
  // coordinator refused for good (`message` says why).
  NodeAgent(EventLoop& loop, OrphanReaper& reaper, const Clock& clock, const StackCatalog& stacks,
            DeviceTelemetry& telemetry, FleetDialer& dialer, NodeAgentOptions options,
            std::function<void(int code, const std::string& message)> on_exit);
  ~NodeAgent() override;

  // Ends left-over runners of a killed agent, reads the spool, dials.
  absl::Status Start(const NodeInventory& inventory);
  // Ends every gang (TERM, grace, KILL), keeps their reports, leaves.
  void Shutdown();

  std::vector<std::string> HeldAttempts() const { return host_.HeldAttempts(); }

 private:
  // GangOutbox
  void Send(const GangReady& message) override { Queue(message); }
  void Send(const GangRefused& message) override { Queue(message); }
  void Send(const RanksJoined& message) override { Queue(message); }
  void Send(const GangProgress& message) override { Queue(message); }
  void Report(AttemptReport report) override;
  void HeldChanged() override;
  void CatchUp() override;
  // FleetStreamObserver
  void OnReceived(CoordinatorMessage message) override;
  void OnWritten() override;
  void OnClosed(const std::string& why) override;

  void Handle(const Welcome& message);
  void Handle(const Refuse& message);
  void Handle(const HeartbeatAck& message);
  void Handle(const PrepareOrder& message);
  void Handle(const StartOrder& message);
  void Handle(const AbortOrder& message);
  void Handle(const ReportAck& message);
  void Handle(const Drain& message);
  void Handle(const DoctorQuestion& message);

  void Perform(const std::vector<SessionAction>& actions);
  void Apply(const session_action::Dial& action);
  void Apply(const session_action::Close& action);
  void Apply(const session_action::SendHello& action);
  void Apply(const session_action::SendHeartbeat& action);
  void Apply(const session_action::Welcomed& action);
  void Apply(const session_action::LeaseEnded& action);
  void Apply(const session_action::Exit& action);

  void AnswerDoctor(const absl::StatusOr<DoctorReport>& result);
  void Queue(AgentMessage message);
  void WriteNext();
  void LeaveWhenIdle();
  void Exit();

  EventLoop& loop_;
  const Clock& clock_;
  FleetDialer& dialer_;
  NodeAgentOptions options_;
  std::function<void(int, const std::string&)> on_exit_;
  NodeInventory inventory_;
  std::optional<ReportSpool> spool_;
  GangHost host_;
  DoctorChild doctor_;
  std::vector<uint64_t> doctor_questions_;  // that wait for its report
  SessionMachine session_;
  DeadlineTimer timer_;  // of session_
  std::unique_ptr<FleetStream> stream_;
  OutQueue queue_;
  bool writing_ = false;
  bool leaving_ = false;
  bool exited_ = false;
  int exit_code_ = 0;
  std::string exit_message_;  // why, where the coordinator refused for good
  bool said_unreachable_ = false;
  uint64_t hellos_ = 0;
  EventLoop::TimerId leave_timer_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace assay

#endif  // ASSAY_AGENT_SESSION_NODE_AGENT_H_
