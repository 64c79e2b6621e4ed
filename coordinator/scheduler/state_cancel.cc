// Runs that end before all their cells were measured: by a user, or by their limit.
#include <fmt/format.h>

#include "coordinator/scheduler/state_impl.h"

namespace assay {

void CoordinatorState::Impl::On(const event::CancelRun& e) {
  Run* run = FindRun(e.run);
  if (run == nullptr) {
    const auto ended = ended_runs_.find(e.run);
    if (ended == ended_runs_.end()) {
      return Answer(e.token, absl::NotFoundError(fmt::format("there is no run {}", e.run)));
    }
    return Answer(e.token, absl::OkStatus(), CancelReply{e.run, ended->second.state});
  }
  if (run->row.state != RunState::kCancelling) {
    run->row.state = RunState::kCancelling;
    run->row.binding_closed = true;
    EndCells(*run,
             {Outcome::kCancelled, std::string(reason::kUserCancelled),
              "the run was cancelled before this cell started"},
             "the run was cancelled while this cell ran");
    PersistRun(*run);
    Notify(e.run);
    ReviewRun(*run);
    schedule_ = true;
  }
  run = FindRun(e.run);
  const RunState state = run != nullptr ? run->row.state : RunState::kCancelled;
  Answer(e.token, absl::OkStatus(), CancelReply{e.run, state});
}

void CoordinatorState::Impl::EndCells(Run& run, const Decision& waiting,
                                      const std::string& running) {
  const std::set<std::string> attempts = run.gangs;
  for (const std::string& attempt : attempts) {
    Gang& gang = gangs_.at(attempt);
    if (!gang.Started()) {
      ReleaseGang(attempt);
    } else if (!gang.decided.has_value()) {
      AbortGang(gang, Decision{waiting.outcome, waiting.reason, running});
    }
  }
  for (Cell& cell : run.cells) {
    if (!cell.Pending()) continue;
    run.End(cell, waiting.outcome, waiting.reason, waiting.message, nullptr);
    batch_.cells.push_back(cell.row);
  }
}

// What still runs is ended, and nothing else is begun: also what is tried again after the limit.
void CoordinatorState::Impl::CheckRunLimit(Run& run) {
  if (!run.limit.has_value() || now_ < *run.limit || run.row.state == RunState::kCancelling) return;
  const std::string limit = fmt::format("the run was not done within its run_limit, {:g} s",
                                        run.row.select.run_limit_seconds);
  EndCells(run,
           {Outcome::kTimeout, std::string(reason::kRunLimit), limit + ": this cell was waiting"},
           limit + ": this cell was ended");
  run.row.binding_closed = true;
  run.row.message = limit;  // stored when the run ends, which is next
  Notify(run.row.id);
}

}  // namespace assay
