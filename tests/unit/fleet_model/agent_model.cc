#include "tests/unit/fleet_model/agent_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "tests/unit/fleet_model/trace.h"

namespace assay::model {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

PrepareOrder OrderOf(const message::Prepare& prepare) {
  PrepareOrder order;
  order.attempt = prepare.attempt;
  order.run = prepare.run;
  order.cell = prepare.cell;
  order.repeat = prepare.repeat;
  order.spec = prepare.spec;
  order.stack = prepare.stack;
  for (const MemberRow& member : prepare.members) {
    order.members.push_back({member.node, member.gpu_uuid, member.local_rank});
  }
  order.endpoint = prepare.endpoint;
  order.seed = prepare.seed;
  order.prepare_seconds = prepare.prepare_seconds;
  order.closing = prepare.closing;
  return order;
}

event::AttemptReport EventOf(const AttemptReport& report, SessionHandle stream) {
  event::AttemptReport event;
  event.session = stream;
  event.attempt = report.attempt;
  event.run = report.run;
  event.cell = report.cell;
  event.node = report.node;
  event.seconds = report.seconds;
  for (const RankReport& rank : report.ranks) {
    event.ranks.push_back({rank.rank, rank.gpu_uuid, rank.outcome, rank.reason, rank.message,
                           rank.exit_code, rank.signal, rank.fields, rank.log_tail, rank.joined});
  }
  return event;
}

}  // namespace

AgentModel::AgentModel(NodeInventory inventory, Surroundings& around, Dice& dice,
                       Coverage& coverage)
    : inventory_(std::move(inventory)), around_(around), dice_(dice), coverage_(coverage) {}

// --- the program

void AgentModel::Start(BootTime now) {
  if (running()) return;
  instance_ = fmt::format("{:016x}", dice_.Next());
  Trace(now, name() + " starts");
  paused_ = leaving_ = refused_ = false;
  hellos_ = 0;
  gangs_ = std::make_unique<GangMachine>(name());
  session_ = std::make_unique<SessionMachine>(dice_.Next());
  // It ends what is left before its first Hello; a driver may hold a process, and then it does not
  // vouch.
  if (!faults_ || !dice_.OneIn(4)) processes_.clear();
  vouches_ = knows_folder_ && processes_.empty();
  knows_folder_ = true;
  Perform(session_->Start(now), now);
}

void AgentModel::EndProgram() {
  Trace(BootTime{}, name() + " ends");
  if (stream_ != 0) around_.HangUp(std::exchange(stream_, 0));
  session_.reset();
  gangs_.reset();
  session_state_ = "idle";
  events_.clear();
  unread_.clear();
  locks_.clear();  // the kernel lets go of them; those of living runners are theirs
  orders_.clear();
  probes_.clear();
  gang_states_.clear();
  sides_.clear();
  dial_failed_ = false;
  for (const std::string& attempt : std::exchange(in_memory_, {})) spool_.erase(attempt);
}

void AgentModel::Kill() {
  if (running()) EndProgram();
}

void AgentModel::Reboot() {
  Kill();
  processes_.clear();
  inventory_.boot_id += "+";
  knows_folder_ = false;
}

void AgentModel::Stop(BootTime now) {
  if (!running() || std::exchange(leaving_, true)) return;
  Post(gang_event::Shutdown{}, now);
}

void AgentModel::ChangeInventory() {
  for (Device& device : inventory_.devices) {
    device.usable = !faults_ || device.usable != dice_.OneIn(2);
  }
  if (running()) Say(event::InventoryChanged{stream_, inventory_});
}

std::optional<BootTime> AgentModel::NextDeadline() const {
  std::optional<BootTime> next;
  const auto consider = [&next](std::optional<BootTime> when) {
    if (when && (!next || *when < *next)) next = when;
  };
  if (running()) {
    consider(session_->NextDeadline());
    consider(gangs_->NextDeadline());
  }
  for (const auto& [attempt, until] : probes_) consider(until);
  for (const RunnerProcess& process : processes_) {
    consider(process.next);
    consider(process.dies);
  }
  return next;
}

void AgentModel::Live(BootTime now) {
  const bool awake = running() && !paused_;
  if (awake) {
    for (const auto& [attempt, uuids] : locks_) lifelines_[attempt] = now + lifeline_;
  }
  LiveProcesses(now);
  if (!awake) return;
  if (std::exchange(dial_failed_, false)) Perform(session_->OnClosed(now), now);
  // As EventLoop does it: descriptors, then timers, then what other threads posted.
  Post(gang_event::Tick{}, now);
  if (running()) Perform(session_->OnTick(now), now);
  std::vector<std::string> probed;
  for (const auto& [attempt, until] : probes_) {
    if (until <= now) probed.push_back(attempt);
  }
  for (const std::string& attempt : probed) {
    probes_.erase(attempt);
    if (faults_ && dice_.OneIn(3)) {
      locks_.erase(attempt);
      Post(gang_event::PrepareFailed{attempt, refusal::kUnreachable, "no way there"}, now);
    } else {
      Post(gang_event::Prepared{attempt, ""}, now);
    }
  }
  if (leaving_ && running() && locks_.empty() && processes_.empty()) {
    Say(event::Leave{stream_, "the agent was stopped"});
    EndProgram();
  }
}

void AgentModel::LiveProcesses(BootTime now) {
  std::vector<GangEvent> said;
  for (RunnerProcess& process : processes_) {
    const BootTime silent = lifelines_[process.attempt];
    if (silent <= now && (!process.dies || silent < *process.dies)) {
      process.dies = silent;
      process.exit_code = 143;
    }
    process.Live(now, dice_, said);
    if (!process.gone) continue;
    Trace(now, fmt::format("{}: rank {} of {} is gone", name(), process.rank, process.attempt));
    around_.Ended(process);
  }
  std::erase_if(processes_, [](const RunnerProcess& process) { return process.gone; });
  NoteEndedSides(said);
  // What it wrote to a killed agent nobody reads; a stopped one reads it when it goes on.
  if (!running()) return;
  for (GangEvent& event : said) unread_.push_back(std::move(event));
  if (paused_) return;
  for (GangEvent& event : std::exchange(unread_, {})) Post(std::move(event), now);
  Post(gang_event::Tick{}, now);
}

void AgentModel::NoteEndedSides(std::vector<GangEvent>& said) {
  std::erase_if(sides_, [&](const auto& entry) {
    const auto& [attempt, side] = entry;
    if (std::any_of(processes_.begin(), processes_.end(),
                    [&](const RunnerProcess& each) { return each.attempt == attempt; })) {
      return false;
    }
    SideResult result;
    result.applies = true;
    result.done = !dice_.OneIn(4);
    result.hopeless = dice_.OneIn(2);
    result.seconds = 5;
    if (side == Side::kSentinel && result.done) result.throughput = 800.0;
    said.push_back(gang_event::SideEnded{attempt, side, result});
    return true;
  });
}

// --- the session

void AgentModel::Perform(const std::vector<SessionAction>& actions, BootTime now) {
  for (const SessionAction& action : actions) {
    if (running()) Apply(action, now);
  }
}

void AgentModel::Apply(const SessionAction& action, BootTime now) {
  if (std::holds_alternative<session_action::Dial>(action)) {
    session_state_ = "greeting";
    stream_ = around_.Dial(*this);
    dial_failed_ = stream_ == 0;
  } else if (std::holds_alternative<session_action::SendHello>(action)) {
    SayHello();
  } else if (std::holds_alternative<session_action::Close>(action)) {
    session_state_ = "waiting";
    coverage_.Saw("session", "closed_by_agent");
    if (stream_ != 0) around_.HangUp(std::exchange(stream_, 0));
  } else if (const auto* beat = std::get_if<session_action::SendHeartbeat>(&action)) {
    Say(event::Heartbeat{stream_, beat->number, gangs_->HeldAttempts(), gangs_->draining(), 0});
  } else if (const auto* welcomed = std::get_if<session_action::Welcomed>(&action)) {
    session_state_ = "up";
    Welcomed(welcomed->welcome, now);
  } else if (std::holds_alternative<session_action::LeaseEnded>(action)) {
    coverage_.Saw("session", "lease_ended");
    Post(gang_event::LeaseEnded{}, now);
  } else if (std::holds_alternative<session_action::Exit>(action)) {
    coverage_.Saw("session", "refused");
    refused_ = true;
    Stop(now);
  }
}

void AgentModel::SayHello() {
  event::AgentHello hello;
  hello.session = stream_;
  hello.address = name() + ".example:5000";
  hello.instance = instance_;
  hello.inventory = inventory_;
  hello.held_attempts = gangs_->HeldAttempts();
  for (const auto& [attempt, report] : spool_) hello.spooled_attempts.push_back(attempt);
  hello.draining = gangs_->draining();
  hello.former_gangs_ended = vouches_;
  hello.answers_doctor = true;
  hello.ordinal = ++hellos_;
  Say(std::move(hello));
}

void AgentModel::Welcomed(const Welcome& welcome, BootTime now) {
  lifeline_ = std::chrono::nanoseconds(static_cast<int64_t>(welcome.lifeline_seconds * 1e9));
  const std::chrono::nanoseconds grace(static_cast<int64_t>(welcome.kill_grace_seconds * 1e9));
  Post(gang_event::Welcomed{grace, welcome.unknown_attempts}, now);
  for (const auto& [attempt, report] : spool_) SendReport(report);
}

void AgentModel::OnClosed(SessionHandle stream, BootTime now) {
  if (!running() || stream != stream_) return;
  stream_ = 0;
  session_state_ = "waiting";
  Perform(session_->OnClosed(now), now);
}

void AgentModel::Receive(const CoordinatorMessage& message, BootTime now) {
  if (!running()) return;
  const bool up = session_->up();
  if (const auto* welcome = std::get_if<message::Welcome>(&message)) {
    const Welcome plain{welcome->session_epoch,     welcome->protocol,
                        welcome->heartbeat_seconds, welcome->lease_seconds,
                        welcome->lifeline_seconds,  welcome->kill_grace_seconds,
                        welcome->unknown_attempts};
    Perform(session_->OnWelcome(plain, now), now);
  } else if (const auto* refuse = std::get_if<message::Refuse>(&message)) {
    coverage_.Saw("refuse", refuse->reason + (refuse->retry ? " retry" : ""));
    Perform(session_->OnRefuse({refuse->reason, refuse->message, refuse->retry}, now), now);
  } else if (const auto* ack = std::get_if<message::HeartbeatAck>(&message)) {
    Perform(session_->OnHeartbeatAck(ack->number, now), now);
  } else if (const auto* prepare = std::get_if<message::Prepare>(&message)) {
    if (up) Post(gang_event::Offered{OrderOf(*prepare)}, now);
  } else if (const auto* start = std::get_if<message::Start>(&message)) {
    if (up) Post(gang_event::Started{{start->attempt, start->endpoint, start->join_seconds}}, now);
  } else if (const auto* abort = std::get_if<message::Abort>(&message)) {
    if (up) Post(gang_event::Aborted{{abort->attempt, abort->outcome, abort->reason}}, now);
  } else if (const auto* done = std::get_if<message::ReportAck>(&message)) {
    in_memory_.erase(done->attempt);
    if (spool_.erase(done->attempt) > 0) around_.Forgot(done->attempt, name());
  } else if (const auto* drain = std::get_if<message::Drain>(&message)) {
    Post(gang_event::DrainSet{drain->on}, now);
  } else if (const auto* question = std::get_if<message::DoctorQuestion>(&message)) {
    if (!faults_ || !dice_.OneIn(3)) Say(event::DoctorAnswer{stream_, question->number, {}, ""});
  }
}

// --- gangs

void AgentModel::Post(GangEvent event, BootTime now) {
  // As NodeAgent::CatchUp does.
  if (!draining_events_ && session_->lease_end() && now >= *session_->lease_end()) {
    Perform(session_->OnTick(now), now);
  }
  events_.push_back(std::move(event));
  if (std::exchange(draining_events_, true)) return;
  while (!events_.empty()) {
    const std::vector<GangEvent> events = std::exchange(events_, {});
    for (const GangEvent& each : events) {
      const std::vector<std::string> before = gangs_->HeldAttempts();
      for (const GangAction& action : gangs_->Step(each, now)) Apply(action, now);
      if (gangs_->HeldAttempts() != before) Perform(session_->BeatNow(now), now);
    }
  }
  draining_events_ = false;
}

void AgentModel::Apply(const GangAction& action, BootTime now) {
  if (const auto* acquire = std::get_if<gang_action::Acquire>(&action)) {
    Acquire(*acquire, now);
  } else if (const auto* release = std::get_if<gang_action::Release>(&action)) {
    coverage_.Saw("agent_gang", "released");
    locks_.erase(release->attempt);
    probes_.erase(release->attempt);
    gang_states_.erase(release->attempt);
  } else if (const auto* spawn = std::get_if<gang_action::Spawn>(&action)) {
    Spawn(*spawn, now);
  } else if (const auto* side = std::get_if<gang_action::RunSide>(&action)) {
    RunSide(*side, now);
  } else if (const auto* stop = std::get_if<gang_action::StopRank>(&action)) {
    StopRank(*stop, now);
  } else if (const auto* stop_side = std::get_if<gang_action::StopSide>(&action)) {
    StopSide(*stop_side, now);
  } else if (const auto* send = std::get_if<gang_action::Send>(&action)) {
    Send(*send);
  } else if (const auto* finish = std::get_if<gang_action::Finish>(&action)) {
    Finish(finish->report);
  }
}

bool AgentModel::Busy(const std::string& uuid) const {
  return std::any_of(locks_.begin(), locks_.end(),
                     [&](const auto& held) { return held.second.contains(uuid); }) ||
         std::any_of(processes_.begin(), processes_.end(),
                     [&](const RunnerProcess& process) { return process.uuid == uuid; });
}

void AgentModel::Acquire(const gang_action::Acquire& action, BootTime now) {
  const std::string& attempt = action.order.attempt;
  const auto refuse = [&](const char* why) {
    events_.push_back(gang_event::PrepareFailed{attempt, why, "the model's whim"});
  };
  gang_states_[attempt] = "acquiring";
  if (dice_.OneIn(disk_full_ ? 10 : 30)) disk_full_ = !disk_full_;
  if (faults_ && disk_full_) return refuse(refusal::kDiskFull);
  if (faults_ && dice_.OneIn(30)) return refuse(refusal::kGpuBusy);  // of another coordinator
  for (const LocalRank& rank : action.ranks) {
    if (Busy(rank.gpu_uuid)) return refuse(refusal::kGpuBusy);
    const auto device =
        std::find_if(inventory_.devices.begin(), inventory_.devices.end(),
                     [&](const Device& each) { return each.uuid == rank.gpu_uuid; });
    if (device == inventory_.devices.end() || !device->usable) return refuse(refusal::kGpuGone);
  }
  for (const LocalRank& rank : action.ranks) locks_[attempt].insert(rank.gpu_uuid);
  orders_[attempt] = action.order;
  const bool many = action.order.members.size() > 1;
  if (!many || action.ranks.front().rank == 0) {
    events_.push_back(gang_event::Prepared{attempt, many ? name() + ":4000" : ""});
  } else {
    probes_[attempt] = now + dice_.Between(milliseconds(0), milliseconds(5000));
  }
}

// A load or a sentinel on each GPU; some devices have neither.
void AgentModel::RunSide(const gang_action::RunSide& action, BootTime now) {
  gang_states_[action.attempt] = SideName(action.side);
  if (dice_.OneIn(4)) {
    events_.push_back(gang_event::SideEnded{action.attempt, action.side, {}});
    return;
  }
  sides_[action.attempt] = action.side;
  const BootTime until =
      now + dice_.Between(milliseconds(500), seconds(faults_ && dice_.OneIn(4) ? 90 : 10));
  for (const std::string& uuid : locks_.at(action.attempt)) {
    RunnerProcess process = ProcessOf(orders_.at(action.attempt), uuid, now);
    process.beside = true;
    process.dies = until;
    Begin(std::move(process));
  }
}

void AgentModel::StopSide(const gang_action::StopSide& action, BootTime now) {
  coverage_.Saw("agent_gang", "side_stopped");
  for (RunnerProcess& process : processes_) {
    if (process.attempt != action.attempt || !process.beside) continue;
    const BootTime end =
        now +
        (process.stubborn ? action.grace : dice_.Between(milliseconds(0), milliseconds(2000)));
    process.dies = std::min(*process.dies, end);
  }
}

RunnerProcess AgentModel::ProcessOf(const PrepareOrder& order, const std::string& uuid,
                                    BootTime now) {
  lifelines_[order.attempt] = now + lifeline_;
  RunnerProcess process;
  process.attempt = order.attempt;
  process.run = order.run;
  process.cell = order.cell;
  process.uuid = uuid;
  process.stubborn = dice_.OneIn(4);
  return process;
}

void AgentModel::Begin(RunnerProcess process) {
  around_.Spawned(process);
  processes_.push_back(std::move(process));
}

void AgentModel::Spawn(const gang_action::Spawn& action, BootTime now) {
  Trace(now, fmt::format("{} starts the runners of {}", name(), action.attempt));
  gang_states_[action.attempt] = "running";
  const PrepareOrder& order = orders_.at(action.attempt);
  for (uint32_t rank = 0; rank < order.members.size(); ++rank) {
    if (order.members[rank].node != name()) continue;
    if (faults_ && dice_.OneIn(30)) {
      events_.push_back(gang_event::SpawnFailed{action.attempt, rank, "no such file"});
      continue;
    }
    RunnerProcess process = ProcessOf(order, order.members[rank].gpu_uuid, now);
    process.rank = rank;
    process.manner = RandomManner(dice_, faults_);
    process.next = now + dice_.Between(milliseconds(100), milliseconds(8000));
    Begin(std::move(process));
  }
}

void AgentModel::StopRank(const gang_action::StopRank& action, BootTime now) {
  coverage_.Saw("agent_gang", "stopping");
  for (RunnerProcess& process : processes_) {
    if (process.attempt != action.attempt || process.rank != action.rank) continue;
    if (process.dies && *process.dies <= now + action.grace) continue;
    process.dies = now + action.grace;
    process.exit_code = -1;
    process.signal = SIGKILL;
    if (process.stubborn) continue;
    process.dies = now + dice_.Between(milliseconds(0), milliseconds(2000));
    process.signal = SIGTERM;
  }
}

void AgentModel::Send(const gang_action::Send& action) {
  if (const auto* ready = std::get_if<GangReady>(&action.message)) {
    gang_states_[ready->attempt] = "ready";
    Say(event::GangReady{stream_, ready->attempt, ready->endpoint});
  } else if (const auto* no = std::get_if<GangRefused>(&action.message)) {
    coverage_.Saw("refusal", no->reason);
    if (const auto it = gang_states_.find(no->attempt);
        it != gang_states_.end() && it->second == "acquiring") {
      gang_states_.erase(it);
    }
    Say(event::GangRefused{stream_, no->attempt, no->reason, no->message});
  } else if (const auto* joined = std::get_if<RanksJoined>(&action.message)) {
    Say(event::RanksJoined{stream_, joined->attempt, joined->ranks});
  } else if (const auto* progress = std::get_if<GangProgress>(&action.message)) {
    Say(event::Progress{stream_, progress->attempt, progress->phase, progress->step,
                        progress->throughput, progress->seconds_left});
  }
}

void AgentModel::Finish(const AttemptReport& report) {
  coverage_.Saw("agent_gang", "finished");
  gang_states_.erase(report.attempt);
  locks_.erase(report.attempt);
  spool_[report.attempt] = report;
  if (faults_ && dice_.OneIn(30)) in_memory_.insert(report.attempt);
  around_.Finished(report);
  if (session_->up()) SendReport(report);
}

void AgentModel::SendReport(const AttemptReport& report) {
  if (stream_ != 0) Say(EventOf(report, stream_));
}

void AgentModel::NoteStates(const std::string& kind) {
  if (!running()) return coverage_.Saw(kind + "session", refused_ ? "refused" : "not_running");
  coverage_.Saw(kind + "session", paused_ ? "stopped" : session_state_);
  for (const auto& [attempt, state] : gang_states_) coverage_.Saw(kind + "agent_gang", state);
}

}  // namespace assay::model
