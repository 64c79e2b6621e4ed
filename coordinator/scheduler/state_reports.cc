// The end of a gang: reports, lost agents, retries, and reports that come too late.
#include <fmt/format.h>

#include <algorithm>

#include "common/ids/ids.h"
#include "coordinator/cell/cell_record.h"
#include "coordinator/scheduler/state_impl.h"

namespace assay {
namespace {

// By rank, as one node's report names them; those of other nodes have no name.
std::vector<MemberRow> MembersThatReported(const event::AttemptReport& report,
                                           const std::string& node) {
  constexpr uint32_t kMostRanks = 4096;
  std::vector<MemberRow> members;
  for (const event::RankReport& rank : report.ranks) {
    if (rank.rank >= kMostRanks) continue;
    if (members.size() <= rank.rank) members.resize(rank.rank + 1);
    members[rank.rank] = {node, rank.gpu_uuid, rank.rank};
    const int64_t world = rank.fields.Integer(Field::kWorldSize).value_or(0);
    if (world > static_cast<int64_t>(members.size()) && world <= kMostRanks) {
      members.resize(static_cast<size_t>(world));
    }
  }
  return members;
}

}  // namespace

void CoordinatorState::Impl::On(const event::AttemptReport& e) {
  const Node* node = fleet_.OfSession(e.session);
  if (node == nullptr) return;
  const auto it = gangs_.find(e.attempt);
  if (it == gangs_.end()) return LateReport(e);
  Gang& gang = it->second;
  GangPart* part = gang.PartOf(node->name);
  if (part == nullptr) return Send(e.session, message::ReportAck{e.attempt});
  if (!gang.Started()) {
    // Prepared but never started: no result can come of it.
    Send(e.session, message::ReportAck{e.attempt});
    RefuseOffer(gang, node->name, "not_started", "it ended before it was started");
    part->asked = false;
    return ReleaseGang(e.attempt);
  }
  gang.last_sign = now_;
  if (part->report.has_value()) return;  // the first counts; acknowledged with the result
  part->report = e;
  part->report->node = node->name;  // believed from the session, not from the message
  part->gone = false;
  const bool failed = std::any_of(e.ranks.begin(), e.ranks.end(), [](const event::RankReport& r) {
    return r.outcome != Outcome::kOk;
  });
  const bool others = std::any_of(gang.parts.begin(), gang.parts.end(),
                                  [](const GangPart& other) { return !other.Settled(); });
  // The peers of a rank that is gone would wait in their collective for ever.
  if (failed && others) AbortGang(gang, std::nullopt);
  FinishIfSettled(e.attempt);
}

void CoordinatorState::Impl::GonePart(Gang& gang, GangPart& part, std::string_view why) {
  part.gone = true;
  // A rank that failed before is the cause; its peer's agent may have gone because of it.
  if (gang.phase == GangPhase::kEnding && !gang.decided.has_value()) return;
  AbortGang(gang, Decision{Outcome::kLost, std::string(reason::kAgentLost),
                           fmt::format("lost on {}: {}", part.node, why)});
}

void CoordinatorState::Impl::FinishIfSettled(const std::string& attempt) {
  const auto it = gangs_.find(attempt);
  if (it == gangs_.end()) return;
  for (const GangPart& part : it->second.parts) {
    if (!part.Settled()) return;
  }
  FinishGang(it->second);
}

void CoordinatorState::Impl::FinishGang(Gang& settled) {
  Gang gang = std::move(settled);
  gangs_.erase(gang.row.id);
  FreeNodes(gang);
  std::vector<const event::AttemptReport*> reports;
  for (const GangPart& part : gang.parts) {
    if (part.report.has_value()) reports.push_back(&*part.report);
  }
  MergedResult merged = MergeReports(gang.row.members, reports, gang.decided);
  Run* run = FindRun(gang.run);
  const bool cancelling = run != nullptr && run->row.state == RunState::kCancelling;
  if (merged.outcome == Outcome::kCancelled && !gang.decided.has_value() && !cancelling) {
    // It would end the run with the exit code of a user's wish.
    merged.outcome = Outcome::kFail;
    merged.reason = reason::kBadOutput;
    merged.message =
        fmt::format("an agent said cancelled, which nobody had asked for: {}", merged.message);
  }
  // Acknowledged once the rows of this step are durable.
  for (const GangPart& part : gang.parts) {
    if (part.report.has_value()) SendToNode(part.node, message::ReportAck{gang.row.id});
  }
  RestFaultyGpus(gang);
  if (run == nullptr) return;
  run->gangs.erase(gang.row.id);
  EndAttempt(*run, run->CellAt(gang.cell), gang, merged);
  Notify(gang.run);
  ReviewRun(*run);
}

// Those whose own ranks said so are left alone for a while, then probed: one fault must neither
// take a GPU away for good nor the others of its gang.
void CoordinatorState::Impl::RestFaultyGpus(const Gang& gang) {
  for (const GangPart& part : gang.parts) {
    Node* node = fleet_.Find(part.node);
    if (node == nullptr || !part.report.has_value()) continue;
    for (const event::RankReport& rank : part.report->ranks) {
      if (rank.reason != reason::kGpuGone && rank.reason != reason::kEccError) continue;
      if (std::find(part.ranks.begin(), part.ranks.end(), rank.rank) == part.ranks.end()) continue;
      Rest& rest = node->device_rests[gang.row.members[rank.rank].gpu_uuid];
      rest.refusals = std::max(rest.refusals, times_.refusals_to_rest);
      RestAfterRefusal(rest, fmt::format("{} on {}: {}", rank.reason, part.node, rank.message));
    }
  }
}

void CoordinatorState::Impl::EndAttempt(Run& run, Cell& cell, Gang& gang,
                                        const MergedResult& merged) {
  AttemptRow& row = gang.row;
  row.state = AttemptState::kEnded;
  row.outcome = merged.outcome;
  row.reason = merged.reason;
  row.message = merged.message;
  row.log_tail = merged.log_tail;
  row.reported = merged.complete;
  row.seconds = merged.seconds;
  if (merged.started_at_unix_ms > 0) row.started_at_unix_ms = merged.started_at_unix_ms;
  row.record = merged.record;
  if (merged.complete) run.reported.insert(row.id);
  if (gang.started != BootTime{}) {
    run.ended_seconds += std::chrono::duration<double>(now_ - gang.started).count();
    ++run.ended_attempts;
  }
  const uint32_t tries = ++cell.tries[static_cast<size_t>(merged.outcome) % cell.tries.size()];
  const bool again = run.row.state != RunState::kCancelling &&
                     tries <= static_cast<uint32_t>(RetriesAllowed(merged.outcome, merged.reason));
  row.counted = !again;
  CellRow as_ended = cell.row;
  as_ended.outcome = row.outcome;
  as_ended.reason = row.reason;
  as_ended.message = row.message;
  row.record = CellRecord(run.row, run.SpecOf(cell), as_ended, &row);
  batch_.attempts.push_back(row);
  if (again) {
    for (const GangPart& part : gang.parts) cell.failed_on.push_back(part.node);
    run.GiveBack(cell);
    schedule_ = true;
    return;
  }
  run.End(cell, merged.outcome, merged.reason, merged.message, &row);
  batch_.cells.push_back(cell.row);
}

// A report of an attempt that is alive here no more: given up as lost, of an earlier life of this
// coordinator, or sent twice. Stored and acknowledged, never counted.
void CoordinatorState::Impl::LateReport(const event::AttemptReport& e) {
  const Node* node = fleet_.OfSession(e.session);
  Run* run = FindRun(e.run);
  const bool known_run = run != nullptr || ended_runs_.contains(e.run);
  const bool stored = run != nullptr && run->reported.contains(e.attempt);
  if (!known_run || stored || !IsUlid(e.attempt)) {
    return Send(e.session, message::ReportAck{e.attempt});
  }
  const KnownAttempt* known = nullptr;
  if (run != nullptr) {
    if (const auto it = run->attempts.find(e.attempt); it != run->attempts.end()) {
      known = &it->second;
    }
  }
  if (known != nullptr && !known->IsOf(node->name)) {
    // Of another node's attempt. Believed, it would be the last word on it, and the true one late.
    return Send(e.session, message::ReportAck{e.attempt});
  }
  AttemptRow row;
  row.id = e.attempt;
  row.run = e.run;
  row.cell = known == nullptr ? e.cell : known->cell;
  row.number = known == nullptr ? 0 : known->number;
  row.state = AttemptState::kEnded;
  row.late = true;
  row.node = node->name;
  row.started_at_unix_ms = e.started_at_unix_ms;
  row.members = MembersThatReported(e, node->name);
  event::AttemptReport report = e;
  report.node = node->name;
  // Of a gang of several nodes each reports for itself: one part alone is no result.
  std::optional<Decision> decided;
  if (std::any_of(row.members.begin(), row.members.end(),
                  [](const MemberRow& member) { return member.node.empty(); })) {
    decided =
        Decision{Outcome::kLost, std::string(reason::kAgentLost),
                 fmt::format("given up before; of its gang {} alone reported, late", node->name)};
  }
  MergedResult merged = MergeReports(row.members, {&report}, decided);
  row.outcome = merged.outcome;
  row.reason = merged.reason;
  row.message = merged.message;
  row.record = std::move(merged.record);
  row.log_tail = std::move(merged.log_tail);
  row.seconds = merged.seconds;
  if (run != nullptr) {
    run->reported.insert(e.attempt);
    if (const Cell* cell = run->FindCell(row.cell); cell != nullptr) {
      CellRow as_ended = cell->row;
      as_ended.outcome = row.outcome;
      as_ended.reason = row.reason;
      as_ended.message = row.message;
      row.record = CellRecord(run->row, run->SpecOf(*cell), as_ended, &row);
    }
  }
  batch_.late_attempts.push_back(std::move(row));
  Send(e.session, message::ReportAck{e.attempt});
}

}  // namespace assay
