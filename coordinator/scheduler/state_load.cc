// What a coordinator takes up again when it starts.
#include <fmt/format.h>

#include <algorithm>

#include "coordinator/scheduler/state_impl.h"

namespace assay {

std::unique_ptr<Run> CoordinatorState::Impl::LoadRun(RunSnapshot snapshot) {
  auto run = std::make_unique<Run>(std::move(snapshot.run), std::move(snapshot.specs), deps_);
  for (CellRow& cell : snapshot.cells) {
    if (!run->AdoptCell(std::move(cell))) break;
  }
  for (const AttemptRow& attempt : snapshot.attempts) {
    Cell* cell = run->FindCell(attempt.cell);
    if (cell == nullptr) continue;
    run->NoteAttempt(attempt);
    cell->row.attempts = std::max(cell->row.attempts, attempt.number);
    if (attempt.state != AttemptState::kEnded || !attempt.outcome.has_value()) continue;
    if (attempt.reported || attempt.late) run->reported.insert(attempt.id);
    if (attempt.number < cell->row.first_attempt || attempt.late) continue;
    ++cell->tries[static_cast<size_t>(*attempt.outcome) % cell->tries.size()];
    for (const MemberRow& member : attempt.members) {
      if (std::find(cell->failed_on.begin(), cell->failed_on.end(), member.node) ==
          cell->failed_on.end()) {
        cell->failed_on.push_back(member.node);
      }
    }
  }
  return run;
}

// An attempt that may be alive: its agent says so when it comes, or its lease runs out.
void CoordinatorState::Impl::AdoptGang(Run& run, AttemptRow row) {
  Cell* cell = run.FindCell(row.cell);
  if (cell == nullptr || row.members.empty() || !cell->Pending()) {
    row.state = AttemptState::kEnded;
    row.outcome = Outcome::kLost;
    row.reason = reason::kAgentLost;
    row.message = "its cell had ended when the coordinator started";
    batch_.attempts.push_back(std::move(row));
    return;
  }
  Gang gang;
  gang.run = run.row.id;
  gang.cell = row.cell;
  gang.row = std::move(row);
  gang.begun = gang.started = gang.limit_from = gang.last_sign = now_;
  gang.phase = GangPhase::kStarted;
  gang.all_joined = true;
  for (uint32_t rank = 0; rank < gang.row.members.size(); ++rank) {
    const std::string& name = gang.row.members[rank].node;
    if (gang.PartOf(name) == nullptr) {
      GangPart part;
      part.node = name;
      part.asked = part.ready = true;
      gang.parts.push_back(std::move(part));
      Node& node = fleet_.Get(name);
      node.gang = gang.row.id;
      node.last_heartbeat = now_;
    }
    gang.PartOf(name)->ranks.push_back(rank);
    gang.joined.insert(rank);
  }
  if (run.row.state == RunState::kCancelling) {
    gang.phase = GangPhase::kEnding;
    gang.decided = Decision{Outcome::kCancelled, std::string(reason::kUserCancelled),
                            "the run was cancelled while this cell ran"};
  }
  const std::string attempt = gang.row.id;
  run.TakePending(*cell, attempt);
  run.gangs.insert(attempt);
  gangs_[attempt] = std::move(gang);
}

void CoordinatorState::Impl::Load(StateSnapshot snapshot, BootTime now) {
  now_ = now;
  for (const NodeRow& row : snapshot.nodes) {
    Node& node = fleet_.Get(row.node);
    node.epoch = row.session_epoch;
    node.machine_id = row.machine_id;
    node.boot_id = row.boot_id;
    node.instance = row.instance;
    node.address = row.address;
    node.last_seen_unix_ms = row.last_hello_unix_ms;
    node.last_heartbeat = now;
    node.user_draining = row.draining;
  }
  for (EndedRun& ended : snapshot.ended) {
    if (!ended.request_id.empty()) run_of_request_[ended.request_id] = ended.id;
    ended_runs_[ended.id] = std::move(ended);
  }
  for (RunSnapshot& stored : snapshot.unfinished) {
    std::vector<AttemptRow> started;
    for (const AttemptRow& attempt : stored.attempts) {
      if (attempt.state == AttemptState::kStarted) started.push_back(attempt);
    }
    const std::string id = stored.run.id;
    std::unique_ptr<Run> run = LoadRun(std::move(stored));
    const double wait = std::clamp(run->row.select.wait_seconds, 0.0, 604'800.0);
    run->bind_deadline = now + std::chrono::milliseconds(static_cast<int64_t>(wait * 1000));
    run->first_agent_deadline = std::max(run->bind_deadline, now + times_.first_agent);
    if (!run->row.request_id.empty()) run_of_request_[run->row.request_id] = id;
    if (run->row.state == RunState::kRunning) run->NoteRunning(now_);
    for (AttemptRow& attempt : started) AdoptGang(*run, std::move(attempt));
    rotation_.push_back(id);
    Run& added = *(runs_[id] = std::move(run));
    added.FindPlaces(fleet_, now_);
  }
}

}  // namespace assay
