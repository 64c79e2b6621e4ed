#include "agent/cell/gang_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "agent/cell/rank_result.h"
#include "common/ids/ids.h"

namespace assay {

using std::chrono::nanoseconds;

std::vector<GangAction> GangMachine::Step(const GangEvent& event, BootTime now) {
  now_ = now;
  actions_.clear();
  std::visit([this](const auto& e) { On(e); }, event);
  return std::exchange(actions_, {});
}

// --- offers

std::string GangMachine::FaultOf(const PrepareOrder& order) const {
  if (!IsSafeId(order.attempt)) return "the attempt's id is not a ULID";
  std::set<std::string> seen;
  size_t local = 0;
  for (const GangMember& member : order.members) {
    if (!seen.insert(member.gpu_uuid).second) {
      return fmt::format("{} is in the gang twice", member.gpu_uuid);
    }
    if (member.node == node_) ++local;
  }
  if (local == 0) return fmt::format("no rank of the gang is on node {}", node_);
  return "";
}

void GangMachine::On(const gang_event::Offered& event) {
  const PrepareOrder& order = event.order;
  if (const auto found = gangs_.find(order.attempt); found != gangs_.end()) {
    // Said again after a lost answer; the same answer does no harm.
    if (found->second.state == State::kReady) {
      Emit(gang_action::Send{GangReady{order.attempt, found->second.endpoint}});
    }
    return;
  }
  if (draining_ || shutting_down_) {
    return Refuse(order.attempt, refusal::kDraining,
                  fmt::format("node {} takes no new work", node_));
  }
  if (const std::string fault = FaultOf(order); !fault.empty()) {
    return Refuse(order.attempt, refusal::kBadOffer, fault);
  }
  Gang gang;
  gang.order = order;
  gang.give_up = now_ + SafeSeconds(order.prepare_seconds, 60);
  gang.progress.attempt = order.attempt;
  std::vector<LocalRank> places;
  for (size_t rank = 0; rank < order.members.size(); ++rank) {
    const GangMember& member = order.members[rank];
    if (member.node != node_) continue;
    Rank local;
    local.place = {static_cast<uint32_t>(rank), member.local_rank, member.gpu_uuid};
    local.report.rank = local.place.rank;
    local.report.gpu_uuid = member.gpu_uuid;
    places.push_back(local.place);
    gang.ranks.push_back(std::move(local));
  }
  gangs_.emplace(order.attempt, std::move(gang));
  Emit(gang_action::Acquire{order, std::move(places)});
}

void GangMachine::Refuse(const std::string& attempt, const std::string& reason,
                         const std::string& message) {
  Emit(gang_action::Send{GangRefused{attempt, reason, message}});
}

void GangMachine::On(const gang_event::Prepared& event) {
  Gang* gang = FindGang(event.attempt);
  if (gang == nullptr || gang->state != State::kAcquiring) {
    // Aborted while the endpoint was tried.
    if (gang == nullptr) Emit(gang_action::Release{event.attempt});
    return;
  }
  gang->state = State::kReady;
  gang->endpoint = event.endpoint;
  gang->stack = gang->order.stack + "@" + event.stack_digest;
  Emit(gang_action::Send{GangReady{event.attempt, event.endpoint}});
}

void GangMachine::On(const gang_event::PrepareFailed& event) {
  if (FindGang(event.attempt) == nullptr) return;
  gangs_.erase(event.attempt);
  Refuse(event.attempt, event.reason, event.message);
}

void GangMachine::On(const gang_event::Started& event) {
  Gang* gang = FindGang(event.order.attempt);
  if (gang == nullptr) {
    return Refuse(event.order.attempt, refusal::kBadOffer,
                  fmt::format("node {} holds no such attempt (any more)", node_));
  }
  if (gang->state != State::kReady) return;
  gang->start_endpoint = event.order.endpoint;
  heat_.Arrive(GpusOf(*gang), now_);
  Proceed(*gang);
}

// --- ends that others decide

void GangMachine::On(const gang_event::Aborted& event) {
  EndGang(event.order.attempt, AbortDiagnosis(event.order));
}

void GangMachine::On(const gang_event::Welcomed& event) {
  if (event.kill_grace > nanoseconds::zero()) kill_grace_ = event.kill_grace;
  for (const std::string& attempt : event.unknown_attempts) {
    EndGang(attempt, {Outcome::kLost, reason::kAgentLost,
                      "the coordinator no longer wanted this attempt when the agent came back"});
  }
  // What was said in the former session may not have arrived.
  for (const auto& [attempt, gang] : gangs_) {
    if (gang.state == State::kReady) {
      Emit(gang_action::Send{GangReady{attempt, gang.endpoint}});
    }
    RanksJoined joined{attempt, {}};
    for (const Rank& rank : gang.ranks) {
      if (rank.joined) joined.ranks.push_back(rank.place.rank);
    }
    if (!joined.ranks.empty()) Emit(gang_action::Send{std::move(joined)});
  }
}

void GangMachine::On(const gang_event::LeaseEnded&) {
  for (const std::string& attempt : HeldAttempts()) {
    EndGang(attempt, {Outcome::kLost, reason::kAgentLost,
                      fmt::format("node {} did not reach the coordinator for the length of its "
                                  "lease and ended the attempt",
                                  node_)});
  }
}

void GangMachine::On(const gang_event::DrainSet& event) { draining_ = event.on; }

void GangMachine::On(const gang_event::Shutdown&) {
  shutting_down_ = true;
  for (const std::string& attempt : HeldAttempts()) {
    EndGang(attempt, {Outcome::kLost, reason::kAgentLost,
                      fmt::format("the agent of node {} was stopped", node_)});
  }
}

void GangMachine::EndGang(const std::string& attempt, const Diagnosis& cause) {
  Gang* gang = FindGang(attempt);
  if (gang == nullptr) return;
  if (gang->state == State::kRunning) return StopAll(*gang, cause);
  if (gang->state == State::kBeside || gang->state == State::kClosing) {
    if (!gang->ended_by) gang->ended_by = cause;
    return Emit(gang_action::StopSide{attempt, kill_grace_});
  }
  gangs_.erase(attempt);
  Emit(gang_action::Release{attempt});
}

// --- what ranks do

void GangMachine::On(const gang_event::SpawnFailed& event) {
  Gang* gang;
  size_t index;
  if (FindRank(event.attempt, event.rank, &gang, &index) == nullptr) return;
  Conclude(*gang, index, {Outcome::kFail, reason::kStartFailed, event.message});
  FinishWhenAllGone(*gang);
}

void GangMachine::On(const gang_event::RankRecord& event) {
  Gang* gang;
  size_t index;
  Rank* rank = FindRank(event.attempt, event.rank, &gang, &index);
  if (rank == nullptr || rank->broken) return;
  rank->last_sign = now_;
  if (rank->result_at) return Broke(*gang, index, "the runner wrote a record after its result");
  std::visit([&](const auto& record) { OnRecord(*gang, index, record); }, event.record);
}

void GangMachine::On(const gang_event::RankBroke& event) {
  Gang* gang;
  size_t index;
  if (FindRank(event.attempt, event.rank, &gang, &index) == nullptr) return;
  Broke(*gang, index, event.message);
}

void GangMachine::On(const gang_event::RecordsClosed& event) {
  Gang* gang;
  size_t index;
  Rank* rank = FindRank(event.attempt, event.rank, &gang, &index);
  if (rank != nullptr && !rank->result_at) rank->closed_at = now_;
}

void GangMachine::OnRecord(Gang& gang, size_t index, const record::Hello& hello) {
  Rank& rank = gang.ranks[index];
  const LocalRank& place = rank.place;
  if (hello.protocol != 1) {
    return Broke(gang, index,
                 fmt::format("the runner speaks protocol {}, the agent 1", hello.protocol));
  }
  // One that fails early may not know its device yet; only a result needs it.
  rank.greeted = SameDevice(hello.uuid, place.gpu_uuid);
  if (!rank.greeted && !hello.uuid.empty()) {
    Broke(gang, index, OtherDeviceMessage(hello.uuid, place.gpu_uuid));
  }
}

void GangMachine::OnRecord(Gang& gang, size_t index, const record::Joined&) {
  Rank& rank = gang.ranks[index];
  if (std::exchange(rank.joined, true)) return;
  Emit(gang_action::Send{RanksJoined{gang.order.attempt, {rank.place.rank}}});
}

void GangMachine::OnRecord(Gang& gang, size_t index, const record::Phase& phase) {
  NoteWindow(gang.ranks[index], phase.phase == "measure");
  if (index != 0) return;
  if (phase.phase == "measure" && !gang.window_open) {
    gang.window_open = true;
    Emit(gang_action::WindowBegin{gang.order.attempt});
  } else if (phase.phase != "measure") {
    CloseWindow(gang);
  }
  gang.progress.phase = phase.phase;
  NoteProgress(gang);
}

void GangMachine::OnRecord(Gang& gang, size_t index, const record::Progress& progress) {
  // One rank speaks for the gang: rank 0.
  if (index != 0) return;
  gang.progress.step = static_cast<uint64_t>(std::max<int64_t>(progress.step, 0));
  gang.progress.throughput = progress.throughput.value_or(0);
  gang.progress.seconds_left = progress.seconds_left.value_or(0);
  NoteProgress(gang);
}

void GangMachine::OnRecord(Gang& gang, size_t index, const record::Result& result) {
  Rank& rank = gang.ranks[index];
  if (result.outcome == "ok" && !(rank.greeted && rank.joined)) {
    return Broke(gang, index,
                 fmt::format("the runner wrote a result without '{}' before it, so nobody knows "
                             "what it measured",
                             rank.greeted ? "joined" : "hello with its device"));
  }
  rank.result_at = now_;
  rank.closed_at.reset();
  NoteWindow(rank, false);
  if (index == 0) CloseWindow(gang);
  std::vector<std::string> dropped;
  rank.result = ResultReport(result, &dropped);
  for (const std::string& name : dropped) {
    Emit(gang_action::Warn{fmt::format("attempt {} rank {}: field {} of the result is dropped",
                                       gang.order.attempt, rank.place.rank, name)});
  }
  if (rank.result->outcome == Outcome::kOk) return;
  if (rank.stopped) {
    // Last words after our SIGTERM; why we sent it stands.
    rank.report.fields = rank.result->fields;
    rank.result.reset();
  } else {
    Fail(gang, index, {rank.result->outcome, ReasonOf(*rank.result), rank.result->message});
  }
}

void GangMachine::On(const gang_event::RankGone& event) {
  Gang* gang;
  size_t index;
  Rank* rank = FindRank(event.attempt, event.rank, &gang, &index);
  if (rank == nullptr) return;
  rank->report.exit_code = event.exit_code;
  rank->report.signal = event.signal;
  rank->report.log_tail = event.log_tail;
  Conclude(*gang, index,
           DiagnoseExit(event.exit_code, event.signal, event.log_tail, event.oom_killed,
                        event.device_is_cpu));
  FinishWhenAllGone(*gang);
}

// --- the end of a rank and of a gang

void GangMachine::Stop(Gang& gang, size_t index, const Diagnosis& cause) {
  Rank& rank = gang.ranks[index];
  if (rank.gone || rank.stopped) return;
  rank.stopped = true;
  if (!rank.decided) rank.decided = cause;
  Emit(gang_action::StopRank{gang.order.attempt, rank.place.rank, kill_grace_});
}

void GangMachine::StopAll(Gang& gang, const Diagnosis& cause) {
  for (size_t index = 0; index < gang.ranks.size(); ++index) Stop(gang, index, cause);
}

void GangMachine::Fail(Gang& gang, size_t index, const Diagnosis& cause) {
  if (gang.first_failed) return;
  gang.first_failed = index;
  gang.first_cause = cause;
  gang.end_peers = now_ + kPeerGrace;
}

void GangMachine::Broke(Gang& gang, size_t index, const std::string& message) {
  const Diagnosis cause{Outcome::kFail, reason::kBadOutput, message};
  Rank& rank = gang.ranks[index];
  rank.broken = true;
  // Garbage takes the word from a result that was already there.
  if (!rank.stopped) rank.result.reset();
  Fail(gang, index, cause);
  Stop(gang, index, cause);
}

void GangMachine::Conclude(Gang& gang, size_t index, const Diagnosis& by_exit) {
  Rank& rank = gang.ranks[index];
  rank.gone = true;
  RankReport& report = rank.report;
  report.joined = rank.joined;
  std::optional<Diagnosis> cause;
  if (rank.result) {
    report.outcome = rank.result->outcome;
    report.reason = rank.result->reason;
    report.message = rank.result->message;
    report.fields = rank.result->fields;
    if (report.outcome == Outcome::kOk && !rank.stopped) cause = Contradiction(report);
  } else {
    cause = rank.decided ? *rank.decided : by_exit;
  }
  if (cause) {
    report.outcome = cause->outcome;
    report.reason = cause->reason;
    report.message = cause->message;
  }
  if (report.outcome == Outcome::kOk) return;
  Fail(gang, index, {report.outcome, ReasonOf(report), report.message});
  // A collective that lost a peer fails too, and says so in words that hide the cause.
  const bool echo = *gang.first_failed != index && report.outcome == Outcome::kFail &&
                    IsEchoReason(report.reason);
  if (echo) {
    const LocalRank& first = gang.ranks[*gang.first_failed].place;
    report.outcome = gang.first_cause->outcome;
    report.reason = gang.first_cause->reason;
    report.message = PeerMessage(first, *gang.first_cause);
  }
}

void GangMachine::FinishWhenAllGone(Gang& gang) {
  const auto gone = [](const Rank& rank) { return rank.gone; };
  if (!std::all_of(gang.ranks.begin(), gang.ranks.end(), gone)) return;
  CloseWindow(gang);
  AttemptReport report;
  report.attempt = gang.order.attempt;
  report.run = gang.order.run;
  report.cell = gang.order.cell;
  report.node = node_;
  report.telemetry = std::move(gang.telemetry);
  NoteTogether(gang, report.telemetry);
  report.seconds = std::chrono::duration<double>(now_ - gang.started).count();
  for (Rank& rank : gang.ranks) report.ranks.push_back(std::move(rank.report));
  if (NeedsClosing(gang, report)) {
    gang.report = std::move(report);
    return RunBeside(gang, Side::kSentinel, State::kClosing);
  }
  gangs_.erase(report.attempt);
  Emit(gang_action::Finish{std::move(report)});
}

void GangMachine::CloseWindow(Gang& gang) {
  if (std::exchange(gang.window_open, false)) {
    heat_.NoteLoad(GpusOf(gang), now_);
    Emit(gang_action::WindowEnd{gang.order.attempt});
  }
}

// --- look-up

std::vector<std::string> GangMachine::HeldAttempts() const {
  std::vector<std::string> attempts;
  for (const auto& [attempt, gang] : gangs_) attempts.push_back(attempt);
  return attempts;
}

GangMachine::Gang* GangMachine::FindGang(const std::string& attempt) {
  const auto found = gangs_.find(attempt);
  return found == gangs_.end() ? nullptr : &found->second;
}

GangMachine::Rank* GangMachine::FindRank(const std::string& attempt, uint32_t rank, Gang** gang,
                                         size_t* index) {
  *gang = FindGang(attempt);
  if (*gang == nullptr || (*gang)->state != State::kRunning) return nullptr;
  for (*index = 0; *index < (*gang)->ranks.size(); ++*index) {
    Rank& found = (*gang)->ranks[*index];
    if (found.place.rank == rank) return found.gone ? nullptr : &found;
  }
  return nullptr;
}

}  // namespace assay
