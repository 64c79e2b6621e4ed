#include "agent/session/node_agent.h"

#include <utility>

#include "common/log/log.h"
#include "common/status/status.h"
#include "common/version.h"

namespace assay {
namespace {

std::chrono::nanoseconds Seconds(double seconds, double fallback) {
  if (!(seconds > 0) || seconds > 3600) seconds = fallback;
  return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

}  // namespace

NodeAgent::NodeAgent(EventLoop& loop, OrphanReaper& reaper, const Clock& clock,
                     const StackCatalog& stacks, DeviceTelemetry& telemetry, FleetDialer& dialer,
                     NodeAgentOptions options, std::function<void(int, const std::string&)> on_exit)
    : loop_(loop),
      clock_(clock),
      dialer_(dialer),
      options_(std::move(options)),
      on_exit_(std::move(on_exit)),
      host_(loop, reaper, clock, stacks, telemetry, *this, options_.host),
      doctor_(loop, reaper, options_.doctor,
              [this](const absl::StatusOr<DoctorReport>& result) { AnswerDoctor(result); }),
      session_(options_.seed),
      timer_(loop, [this] { Perform(session_.OnTick(clock_.Now())); }) {}

NodeAgent::~NodeAgent() {
  *alive_ = false;
  loop_.Cancel(leave_timer_);
}

absl::Status NodeAgent::Start(const NodeInventory& inventory) {
  ASSAY_ASSIGN_OR_RETURN(spool_, ReportSpool::Open(options_.host.state_dir + "/spool"));
  ASSAY_RETURN_IF_ERROR(host_.Open());
  inventory_ = inventory;
  host_.SetInventory(inventory_);
  Perform(session_.Start(clock_.Now()));
  return absl::OkStatus();
}

void NodeAgent::Shutdown() {
  if (std::exchange(leaving_, true)) return;
  spdlog::info("stopping: {} attempts are ended", host_.HeldAttempts().size());
  host_.Post(gang_event::Shutdown{});
  LeaveWhenIdle();
}

void NodeAgent::LeaveWhenIdle() {
  if (!leaving_ || exited_ || !host_.Idle()) return;
  const bool all_told = spool_->Attempts().empty();
  if (session_.up() && !all_told && leave_timer_.second == 0) {
    leave_timer_ = loop_.RunAt(BootClock::now() + kLastAckWait, [this] { Exit(); });
    return;
  }
  if (!session_.up()) return Exit();
  if (leave_timer_.second != 0 && !all_told) return;
  Queue(Leave{"the agent was stopped"});
  // Only what the wire takes at once; the coordinator notices the end of the stream anyway.
  loop_.Cancel(leave_timer_);
  leave_timer_ = loop_.RunAt(BootClock::now() + std::chrono::milliseconds(100), [this] { Exit(); });
}

void NodeAgent::Exit() {
  if (std::exchange(exited_, true)) return;
  on_exit_(exit_code_, exit_message_);
}

// --- from the gangs

void NodeAgent::Report(AttemptReport report) {
  const std::string attempt = report.attempt;
  const std::string bytes = options_.encode(report);
  if (const absl::Status status = spool_->Put(attempt, bytes); !status.ok()) {
    spdlog::error("the report of {} is kept in memory only: {}", attempt, Message(status));
  }
  if (session_.up()) Queue(SpooledReport{attempt, bytes});
  if (leaving_) {
    loop_.Post([this, alive = alive_] {
      if (*alive) LeaveWhenIdle();
    });
  }
}

void NodeAgent::HeldChanged() { Perform(session_.BeatNow(clock_.Now())); }

// --- the stream

void NodeAgent::Queue(AgentMessage message) {
  // Without a session there is nobody to tell; what must not be lost is in the spool or said again
  // after Welcome.
  if (stream_ == nullptr) return;
  queue_.Push(std::move(message));
  WriteNext();
}

void NodeAgent::WriteNext() {
  while (stream_ != nullptr && !writing_) {
    const std::optional<AgentMessage> message = queue_.Pop();
    if (!message) return;
    writing_ = stream_->Write(*message);
    if (const auto* report = std::get_if<SpooledReport>(&*message); !writing_ && report) {
      spool_->SetAside(report->attempt);
    }
  }
}

void NodeAgent::OnWritten() {
  writing_ = false;
  WriteNext();
}

void NodeAgent::OnClosed(const std::string& why) {
  if (!said_unreachable_ && !leaving_) spdlog::warn("no session with the coordinator: {}", why);
  said_unreachable_ = true;  // once, not at every try
  Apply(session_action::Close{});
  Perform(session_.OnClosed(clock_.Now()));
}

void NodeAgent::OnReceived(CoordinatorMessage message) {
  std::visit([this](const auto& m) { Handle(m); }, message);
}

void NodeAgent::Handle(const Welcome& message) {
  Perform(session_.OnWelcome(message, clock_.Now()));
}

void NodeAgent::Handle(const Refuse& message) {
  spdlog::warn("the coordinator refused this agent ({}): {}", message.reason, message.message);
  Perform(session_.OnRefuse(message, clock_.Now()));
}

void NodeAgent::Handle(const HeartbeatAck& message) {
  Perform(session_.OnHeartbeatAck(message.number, clock_.Now()));
}

// Orders count only within a session that was welcomed.
void NodeAgent::Handle(const PrepareOrder& message) {
  if (session_.up()) host_.Post(gang_event::Offered{message});
}

void NodeAgent::Handle(const StartOrder& message) {
  if (session_.up()) host_.Post(gang_event::Started{message});
}

void NodeAgent::Handle(const AbortOrder& message) {
  if (session_.up()) host_.Post(gang_event::Aborted{message});
}

void NodeAgent::Handle(const ReportAck& message) {
  spool_->Remove(message.attempt);
  if (leaving_ && spool_->Attempts().empty()) LeaveWhenIdle();
}

void NodeAgent::Handle(const Drain& message) { host_.Post(gang_event::DrainSet{message.on}); }

void NodeAgent::Handle(const DoctorQuestion& message) {
  constexpr size_t kMostQuestions = 64;
  if (!session_.up() || doctor_questions_.size() == kMostQuestions) return;
  doctor_questions_.push_back(message.number);
  doctor_.Ask(!host_.HeldAttempts().empty());
}

// Of a question from a session before this one the coordinator knows nothing any more.
void NodeAgent::AnswerDoctor(const absl::StatusOr<DoctorReport>& result) {
  for (const uint64_t number : std::exchange(doctor_questions_, {})) {
    DoctorAnswer answer{number, {}, ""};
    if (result.ok()) {
      answer.report = *result;
    } else {
      answer.error = Message(result.status());
    }
    Queue(std::move(answer));
  }
}

// --- the session

void NodeAgent::CatchUp() {
  const BootTime now = clock_.Now();
  if (session_.lease_end() && now >= *session_.lease_end()) Perform(session_.OnTick(now));
}

void NodeAgent::Perform(const std::vector<SessionAction>& actions) {
  for (const SessionAction& action : actions) {
    std::visit([this](const auto& a) { Apply(a); }, action);
  }
  timer_.Set(session_.NextDeadline());
}

void NodeAgent::Apply(const session_action::Dial&) {
  queue_.Clear();
  writing_ = false;
  stream_ = dialer_.Dial(*this);
}

void NodeAgent::Apply(const session_action::Close&) {
  queue_.Clear();
  writing_ = false;
  doctor_questions_.clear();
  if (stream_ == nullptr) return;
  stream_->Detach();
  // Not now: this may run within one of its callbacks.
  std::shared_ptr<FleetStream> dying(std::move(stream_));
  loop_.Post([dying] {});
}

void NodeAgent::Apply(const session_action::SendHello&) {
  Queue(Hello{static_cast<uint32_t>(kFleetProtocol), options_.instance, inventory_,
              host_.HeldAttempts(), spool_->Attempts(), host_.draining(),
              host_.former_gangs_ended(), true, ++hellos_});
}

void NodeAgent::Apply(const session_action::SendHeartbeat& action) {
  Queue(Heartbeat{action.number, host_.HeldAttempts(), host_.draining(), clock_.WallNow()});
}

void NodeAgent::Apply(const session_action::Welcomed& action) {
  const Welcome& welcome = action.welcome;
  said_unreachable_ = false;
  spdlog::info("session {} with the coordinator began", welcome.session_epoch);
  host_.SetLifeline(Seconds(welcome.lifeline_seconds, 10));
  if (options_.endpoint_host) host_.SetEndpointHost(options_.endpoint_host());
  host_.Post(
      gang_event::Welcomed{Seconds(welcome.kill_grace_seconds, 5), welcome.unknown_attempts});
  for (const std::string& attempt : spool_->Attempts()) {
    Queue(SpooledReport{attempt, *spool_->Find(attempt)});
  }
}

void NodeAgent::Apply(const session_action::LeaseEnded&) {
  if (!host_.HeldAttempts().empty()) {
    spdlog::warn("the lease ended; {} attempts are ended", host_.HeldAttempts().size());
  }
  host_.Post(gang_event::LeaseEnded{});
}

void NodeAgent::Apply(const session_action::Exit& action) {
  if (!leaving_) {
    exit_code_ = 2;
    exit_message_ = action.message;
  }
  // Nothing of ours may run on without a coordinator.
  Shutdown();
  LeaveWhenIdle();
}

}  // namespace assay
