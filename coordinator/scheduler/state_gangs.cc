// The life of a gang from Prepare to Abort; see gang.h for its phases.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/runner_protocol/cell_file.h"
#include "coordinator/scheduler/state_impl.h"

namespace assay {
namespace {

std::chrono::nanoseconds FromSeconds(double seconds) {
  constexpr double kLongest = 30 * 24 * 3600.0;
  const double bounded = std::isfinite(seconds) ? std::clamp(seconds, 0.0, kLongest) : kLongest;
  return std::chrono::nanoseconds(static_cast<int64_t>(bounded * 1e9));
}

// What the runner of rank 0 is given, as far as the coordinator knows it: ordinal and time of spawn
// are the agent's.
std::string CellFileText(const RunRow& run, const CellRow& cell, const Spec& spec, const Gang& gang,
                         std::string_view device_kind) {
  CellFile file;
  file.attempt = gang.row.id;
  file.run = run.id;
  file.cell = cell.cell;
  file.repeat = cell.repeat;
  file.stack = gang.row.stack;
  file.spec = spec;
  file.world_size = spec.colocate == "all" ? 1 : static_cast<int>(gang.row.members.size());
  file.endpoint = file.world_size > 1 ? gang.endpoint : "";
  file.device_kind = device_kind;
  file.device_uuid = gang.row.members[0].gpu_uuid;
  file.card = gang.row.card;
  file.seed = gang.row.seed;
  return CellFileToJson(file).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string_view DeviceKind(const Node& node, std::string_view uuid, bool simulated) {
  if (simulated) return "simulated";
  for (const Device& device : node.inventory.devices) {
    if (device.uuid == uuid) return device.kind == "cpu" ? "cpu" : "cuda";
  }
  return "cuda";
}

}  // namespace

void CoordinatorState::Impl::On(const event::GangReady& e) {
  const Node* node = fleet_.OfSession(e.session);
  const auto it = gangs_.find(e.attempt);
  if (node == nullptr || it == gangs_.end()) return;
  Gang& gang = it->second;
  GangPart* part = gang.PartOf(node->name);
  if (part == nullptr || !part->asked) return;
  if (gang.phase == GangPhase::kStarted && !part->Settled()) {
    // It waits for a Start that went to a session, or was decided by a coordinator, that is no
    // more. An agent that had it already takes no second one.
    if (gang.endpoint.empty()) gang.endpoint = e.endpoint;
    gang.last_sign = now_;
    return SendStart(gang, *part);
  }
  if (part->ready || gang.Started()) return;
  part->ready = true;
  gang.last_sign = now_;
  if (gang.phase == GangPhase::kPrepareFirst) {
    gang.endpoint = e.endpoint;
    if (gang.parts.size() == 1) return StartGang(gang);
    if (gang.endpoint.empty()) {
      RefuseOffer(gang, node->name, "unreachable_endpoint", "its agent named no endpoint");
      return ReleaseGang(e.attempt);
    }
    gang.phase = GangPhase::kPrepareOthers;
    gang.deadline = now_ + times_.ready;
    for (size_t i = 1; i < gang.parts.size(); ++i) SendPrepare(gang, gang.parts[i]);
    return;
  }
  for (const GangPart& other : gang.parts) {
    if (!other.ready) return;
  }
  StartGang(gang);
}

// The attempt becomes a row, and only when that is durable is anybody told to start.
void CoordinatorState::Impl::StartGang(Gang& gang) {
  Run* run = FindRun(gang.run);
  if (run == nullptr) return;
  Cell& cell = run->CellAt(gang.cell);
  gang.row.number = ++cell.row.attempts;
  gang.row.state = AttemptState::kStarted;
  gang.row.started_at_unix_ms = WallMs();
  if (const Node* node = fleet_.Find(gang.row.node); node != nullptr) {
    const auto kind = DeviceKind(*node, gang.row.members[0].gpu_uuid, gang.row.simulated);
    gang.row.cell_file = CellFileText(run->row, cell.row, run->SpecOf(cell), gang, kind);
  }
  run->NoteAttempt(gang.row);
  run->NoteRunning(now_);
  gang.phase = GangPhase::kStarted;
  gang.begun = gang.started = gang.limit_from = gang.last_sign = now_;
  gang.deadline = now_ + times_.join;
  batch_.attempts.push_back(gang.row);
  if (run->row.state == RunState::kWaiting) {
    run->row.state = RunState::kRunning;
    if (run->row.started_at_unix_ms == 0) run->row.started_at_unix_ms = WallMs();
    PersistRun(*run);
  }
  for (const GangPart& part : gang.parts) SendStart(gang, part);
  Notify(gang.run);
}

void CoordinatorState::Impl::SendStart(const Gang& gang, const GangPart& part) {
  const double join_seconds = std::chrono::duration<double>(times_.join).count();
  SendToNode(part.node, message::Start{gang.row.id, gang.endpoint, join_seconds});
}

void CoordinatorState::Impl::On(const event::GangRefused& e) {
  const Node* node = fleet_.OfSession(e.session);
  const auto it = gangs_.find(e.attempt);
  if (node == nullptr || it == gangs_.end()) return;
  Gang& gang = it->second;
  GangPart* part = gang.PartOf(node->name);
  if (part == nullptr) return;
  if (gang.Started()) {
    // It gave the GPUs back before the Start came; nothing of it runs there.
    if (part->Settled()) return;
    GonePart(gang, *part, fmt::format("its agent gave it back before it started: {}", e.message));
    return FinishIfSettled(e.attempt);
  }
  if (!part->asked) return;
  RefuseOffer(gang, node->name, e.reason, e.message);
  part->asked = false;
  ReleaseGang(e.attempt);
}

void CoordinatorState::Impl::RefuseOffer(Gang& gang, const std::string& name,
                                         const std::string& code, const std::string& message) {
  Node* node = fleet_.Find(name);
  Run* run = FindRun(gang.run);
  if (node == nullptr || run == nullptr) return;
  std::string why =
      fmt::format("{} refused: {}{}{}", name, code, message.empty() ? "" : ": ", message);
  if (code == "draining") {
    node->agent_draining = true;  // until its next heartbeat says otherwise
    return;
  }
  if (code == "gpu_busy") {
    for (const MemberRow& member : gang.row.members) {
      if (member.node != name) continue;
      Rest& rest = node->device_rests[member.gpu_uuid];
      RestAfterRefusal(rest, why);
      // Nothing is wrong with the node: as soon as the other attempt ends the GPU can be had.
      rest.until = std::min(rest.until, now_ + times_.busy);
    }
    return;
  }
  RestAfterRefusal(node->rest, why);
  Cell& cell = run->CellAt(gang.cell);
  ++cell.refusals;
}

void CoordinatorState::Impl::SendAbort(const GangPart& part, const std::string& attempt,
                                       Outcome outcome, std::string_view code) {
  SendToNode(part.node, message::Abort{attempt, outcome, std::string(code)});
}

void CoordinatorState::Impl::FreeNodes(const Gang& gang) {
  for (const GangPart& part : gang.parts) {
    Node* node = fleet_.Find(part.node);
    if (node != nullptr && node->gang == gang.row.id) node->gang.clear();
  }
  schedule_ = true;
}

// A copy, since some hand over a node's `gang`, which ends here.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void CoordinatorState::Impl::ReleaseGang(std::string attempt) {
  const auto it = gangs_.find(attempt);
  if (it == gangs_.end()) return;
  Gang gang = std::move(it->second);
  gangs_.erase(it);
  for (const GangPart& part : gang.parts) {
    if (part.asked) SendAbort(part, attempt, Outcome::kCancelled, "");
  }
  FreeNodes(gang);
  Run* run = FindRun(gang.run);
  if (run == nullptr) return;
  run->gangs.erase(attempt);
  Cell& cell = run->CellAt(gang.cell);
  run->GiveBack(cell);
  if (run->row.state == RunState::kCancelling) {
    run->End(cell, Outcome::kCancelled, reason::kUserCancelled,
             "the run was cancelled before this cell started", nullptr);
    batch_.cells.push_back(cell.row);
  } else if (cell.refusals >= times_.refusals_to_fail) {
    const Node* node = fleet_.Find(gang.row.node);
    run->End(cell, Outcome::kFail, reason::kStartFailed,
             fmt::format("no agent would start it in {} offers; the last: {}", cell.refusals,
                         node != nullptr ? node->rest.why : ""),
             nullptr);
    batch_.cells.push_back(cell.row);
  }
  Notify(gang.run);
}

void CoordinatorState::Impl::On(const event::RanksJoined& e) {
  const Node* node = fleet_.OfSession(e.session);
  const auto it = gangs_.find(e.attempt);
  if (node == nullptr || it == gangs_.end() || !it->second.Started()) return;
  Gang& gang = it->second;
  const GangPart* part = gang.PartOf(node->name);
  if (part == nullptr) return;
  gang.last_sign = now_;
  for (const uint32_t rank : e.ranks) {
    if (std::find(part->ranks.begin(), part->ranks.end(), rank) != part->ranks.end()) {
      gang.joined.insert(rank);
    }
  }
  if (gang.all_joined || gang.joined.size() < gang.row.members.size()) return;
  gang.all_joined = true;
  if (gang.phase == GangPhase::kStarted) gang.deadline.reset();
  // The probe went well: its nodes and GPUs are as good as any again.
  for (const GangPart& each : gang.parts) {
    if (Node* of = fleet_.Find(each.node); of != nullptr) {
      of->rest = Rest();
      for (const uint32_t rank : each.ranks)
        of->device_rests.erase(gang.row.members[rank].gpu_uuid);
    }
  }
  if (Run* run = FindRun(gang.run); run != nullptr) run->CellAt(gang.cell).refusals = 0;
  Notify(gang.run);
}

void CoordinatorState::Impl::On(const event::Progress& e) {
  const Node* node = fleet_.OfSession(e.session);
  const auto it = gangs_.find(e.attempt);
  if (node == nullptr || it == gangs_.end()) return;
  Gang& gang = it->second;
  if (!gang.Started() || gang.PartOf(node->name) == nullptr) return;
  gang.last_sign = now_;
  NoteBeside(gang, e.phase);
  // Rank 0 speaks for the gang in what is shown; any agent's word is a sign of life.
  if (node->name == gang.row.node) {
    gang.progress = e;
    if (!std::isfinite(e.throughput)) gang.progress.throughput = 0;
    if (!std::isfinite(e.seconds_left)) gang.progress.seconds_left = 0;
  }
  Notify(gang.run);
}

// While an agent settles its GPUs, or runs their sentinel, no limit of the cell runs; but that has
// a limit of its own, behind which what it says moves nothing any more.
void CoordinatorState::Impl::NoteBeside(Gang& gang, std::string_view phase) {
  if (phase != "settle" && phase != "sentinel") return gang.beside_since.reset();
  const auto passed = now_ - gang.beside_since.value_or(gang.all_joined ? now_ : gang.begun);
  gang.beside_since = now_;
  if (gang.phase != GangPhase::kStarted || gang.beside + passed > times_.beside) return;
  gang.beside += passed;
  gang.limit_from += passed;
  if (!gang.all_joined) gang.deadline = now_ + times_.join;
}

void CoordinatorState::Impl::AbortGang(Gang& gang, std::optional<Decision> decision) {
  if (!gang.decided.has_value()) gang.decided = std::move(decision);
  gang.phase = GangPhase::kEnding;
  gang.deadline = now_ + times_.kill_grace + times_.lifeline + times_.abort_margin;
  const Outcome outcome = gang.decided.has_value() ? gang.decided->outcome : Outcome::kFail;
  const std::string code =
      gang.decided.has_value() ? gang.decided->reason : std::string(reason::kRunnerError);
  for (const GangPart& part : gang.parts) {
    if (!part.Settled()) SendAbort(part, gang.row.id, outcome, code);
  }
  Notify(gang.run);
}

void CoordinatorState::Impl::CheckGang(const std::string& attempt) {
  const auto it = gangs_.find(attempt);
  if (it == gangs_.end()) return;
  Gang& gang = it->second;
  const Run* run = FindRun(gang.run);
  if (run == nullptr) return;
  const bool over = gang.deadline.has_value() && now_ >= *gang.deadline;
  const Limits& limits = run->SpecOf(run->CellAt(gang.cell)).limits;
  if (!gang.Started()) {
    if (!over) return;
    for (const GangPart& part : gang.parts) {
      if (part.asked && !part.ready) {
        RefuseOffer(gang, part.node, "no_answer", "no answer to Prepare in time");
      }
    }
    return ReleaseGang(attempt);
  }
  if (gang.phase == GangPhase::kEnding) {
    // Still held: say it again. What an agent holds no longer is settled by its heartbeats.
    if (over) AbortGang(gang, std::nullopt);
    return;
  }
  if (over && !gang.all_joined) {
    std::string missing;
    for (uint32_t rank = 0; rank < gang.row.members.size(); ++rank) {
      if (gang.joined.contains(rank)) continue;
      missing += fmt::format("{}rank {} ({} of {})", missing.empty() ? "" : ", ", rank,
                             gang.row.members[rank].gpu_uuid, gang.row.members[rank].node);
    }
    const auto waited = std::chrono::duration<double>(times_.join).count();
    return AbortGang(gang,
                     Decision{Outcome::kFail, std::string(reason::kJoinTimeout),
                              fmt::format("did not join within {:.0f} s: {}", waited, missing)});
  }
  if (now_ >= gang.limit_from + FromSeconds(limits.cell_seconds) + times_.cell_margin) {
    return AbortGang(gang, Decision{Outcome::kTimeout, std::string(reason::kCellLimit),
                                    fmt::format("not done within limits.cell_seconds, {:.0f} s",
                                                limits.cell_seconds)});
  }
  for (const GangPart& part : gang.parts) {
    const Node* node = fleet_.Find(part.node);
    if (node == nullptr || !node->Up()) return;  // the lease decides, not silence
  }
  if (gang.all_joined &&
      now_ >= gang.last_sign + FromSeconds(limits.no_step_seconds) + times_.no_step_margin) {
    AbortGang(gang, Decision{Outcome::kHung, std::string(reason::kNoProgress),
                             fmt::format("no sign of life within limits.no_step_seconds, {:.0f} s; "
                                         "with several GPUs look at P2P, ACS and IOMMU",
                                         limits.no_step_seconds)});
  }
}

}  // namespace assay
