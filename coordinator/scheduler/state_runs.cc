// Users' events: submit, cancel, rerun and merge; binding of targets and the end of a run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "common/results/outcome.h"
#include "common/text/number_format.h"
#include "coordinator/scheduler/state_impl.h"

namespace assay {
namespace {

std::chrono::milliseconds WaitOf(const Selection& select) {
  constexpr double kLongestSeconds = 7 * 24 * 3600.0;
  const double seconds = std::isfinite(select.wait_seconds) ? select.wait_seconds : 0;
  return std::chrono::milliseconds(
      static_cast<int64_t>(std::clamp(seconds, 0.0, kLongestSeconds) * 1000));
}

bool SelectsByName(const std::string& name, std::string_view card) {
  Selection one;
  one.all_cards = false;
  one.cards = {name};
  return one.Selects(card);
}

// The slices of a run are one shuffle.
uint64_t SeedOf(std::string_view run_id) {
  uint64_t seed = 0;
  for (const char c : run_id) seed = seed * 31 + static_cast<unsigned char>(c);
  return seed;
}

// What the file and its sender say; id, seed and time are given by the coordinator.
RunRow RowOf(const event::SubmitRun& e) {
  RunRow row;
  row.request_id = e.request_id;
  row.submitted_by = e.user;
  row.labels = e.labels;
  row.slice = e.slice;
  row.name = e.matrix.name;
  row.digest = e.digest;
  row.yaml = e.yaml;
  row.file_name = e.file_name;
  row.baseline = e.matrix.baseline;
  row.select = e.matrix.select;
  row.repeat = static_cast<uint32_t>(e.matrix.repeat);
  row.specs = e.matrix.specs.size();
  return row;
}

}  // namespace

// A request that is sent once more, since its answer was lost.
void CoordinatorState::Impl::AnswerAgain(const event::SubmitRun& e, const std::string& id) {
  SubmitReply reply;
  reply.run = id;
  std::string digest;
  if (const Run* run = FindRun(id); run != nullptr) {
    digest = run->row.digest;
    reply.cells = run->cells.size();
    reply.specs = run->specs.size();
  } else if (const auto ended = ended_runs_.find(id); ended != ended_runs_.end()) {
    digest = ended->second.digest;
    reply.cells = ended->second.cells;
    reply.specs = ended->second.specs;
  }
  if (digest != e.digest) {
    return Answer(e.token, absl::InvalidArgumentError(fmt::format(
                               "request id {} was used for another matrix, that of run {}: give "
                               "each submission an id of its own",
                               e.request_id, id)));
  }
  Answer(e.token, absl::OkStatus(), reply);
}

void CoordinatorState::Impl::Continue(const event::SubmitRun& e, const Run& run) {
  SubmitReply reply{run.row.id, run.cells.size(), run.specs.size(), true, {}};
  if (!e.labels.empty() && e.labels != run.row.labels) {
    reply.warnings.push_back(
        fmt::format("run {} goes on with the labels that it began with ({}); --new starts another",
                    run.row.id, run.row.labels.empty() ? "none" : LabelsText(run.row.labels)));
  }
  Answer(e.token, absl::OkStatus(), std::move(reply));
}

void CoordinatorState::Impl::Resume(const event::SubmitRun& e) {
  const Run* run = FindRun(e.resumed);
  if (run == nullptr || run->row.state == RunState::kCancelling) {
    return Answer(e.token, absl::FailedPreconditionError(fmt::format(
                               "run {} {}; ask again", e.resumed,
                               run == nullptr ? "ended meanwhile" : "is being cancelled")));
  }
  Continue(e, *run);
}

// All slices of a run have its id, so one state directory can hold one of them.
absl::Status CoordinatorState::Impl::CheckSliceIsNew(const event::SubmitRun& e) const {
  if (e.slice.index > e.matrix.specs.size()) {
    return absl::InvalidArgumentError(fmt::format("slice {} is empty, since the matrix has {}",
                                                  e.slice.ToString(),
                                                  Counted(e.matrix.specs.size(), "spec")));
  }
  const std::string id = SlicedRunId(e.digest, e.slice);
  const Run* run = FindRun(id);
  if (run == nullptr && !ended_runs_.contains(id)) return absl::OkStatus();
  if (run != nullptr && run->row.slice != e.slice) {
    return absl::FailedPreconditionError(fmt::format(
        "this state directory runs slice {} of the same matrix; give each slice one of its own "
        "(--state DIR), and `assay merge` joins them",
        run->row.slice.ToString()));
  }
  if (run != nullptr && !e.force_new && run->row.state != RunState::kCancelling) {
    return absl::OkStatus();  // to be continued
  }
  return absl::FailedPreconditionError(fmt::format(
      "run {} of the slices of this matrix {} here: `assay run --resume` goes on with what failed, "
      "--slice-id WORD, the same for all slices, starts another run; a further slice of the same "
      "run needs a state directory of its own (--state DIR)",
      id, run == nullptr ? "has ended" : "is not over"));
}

void CoordinatorState::Impl::On(const event::SubmitRun& e) {
  if (!e.request_id.empty()) {
    if (const auto it = run_of_request_.find(e.request_id); it != run_of_request_.end()) {
      return AnswerAgain(e, it->second);
    }
  }
  if (!e.resumed.empty()) return Resume(e);
  if (!e.slice.IsWhole()) {
    if (absl::Status status = CheckSliceIsNew(e); !status.ok()) {
      return Answer(e.token, std::move(status));
    }
  }
  if (!e.force_new) {
    for (const auto& [id, run] : runs_) {
      if (run->row.digest != e.digest || run->row.slice != e.slice ||
          run->row.state == RunState::kCancelling) {
        continue;
      }
      return Continue(e, *run);
    }
  }
  if (e.matrix.specs.empty() || e.matrix.repeat < 1) {
    return Answer(e.token, absl::InvalidArgumentError("the matrix has no cells: nothing to run"));
  }
  RunRow row = RowOf(e);
  row.id = e.slice.IsWhole() ? deps_.new_id(wall_) : SlicedRunId(e.digest, e.slice);
  constexpr uint64_t kSeedMask = (uint64_t{1} << 62) - 1;
  const auto fresh = [&] { return e.slice.IsWhole() ? deps_.new_seed() : SeedOf(row.id); };
  row.seed = (e.matrix.seed.has_value() ? *e.matrix.seed : fresh()) & kSeedMask;
  row.submitted_at_unix_ms = WallMs();
  auto run = std::make_unique<Run>(std::move(row), e.matrix.specs, deps_);
  run->bind_deadline = now_ + WaitOf(run->row.select);
  run->first_agent_deadline = std::max(run->bind_deadline, now_ + times_.first_agent);
  const std::string id = run->row.id;
  Run& added = *(runs_[id] = std::move(run));
  // Before the runs that have been served, behind those that wait for their first cell too.
  rotation_.insert(std::find_if(rotation_.begin(), rotation_.end(),
                                [this](const std::string& other) {
                                  const Run* each = FindRun(other);
                                  return each->row.state != RunState::kWaiting ||
                                         !each->gangs.empty();
                                }),
                   id);
  if (!e.request_id.empty()) run_of_request_[e.request_id] = id;
  for (const Spec& spec : added.specs) batch_.specs.push_back({id, spec});
  Bind(added);
  SubmitReply reply{id, added.cells.size(), added.specs.size(), false, {}};
  PersistRun(added);
  ReviewRun(added);
  Notify(id);
  schedule_ = true;
  Answer(e.token, absl::OkStatus(), reply);
}

absl::Status CoordinatorState::Impl::CheckRerun(const event::Rerun& e) const {
  if (FindRun(e.run) != nullptr) {
    return absl::FailedPreconditionError(
        fmt::format("run {} has not ended; wait for it or cancel it first", e.run));
  }
  const auto ended = ended_runs_.find(e.run);
  if (ended == ended_runs_.end()) {
    return absl::NotFoundError(fmt::format("there is no run {}", e.run));
  }
  if (!e.loaded.has_value() || e.loaded->run.id != e.run ||
      e.loaded->run.generation != ended->second.generation || e.loaded->specs.empty() ||
      !IsEnded(e.loaded->run.state)) {
    return absl::FailedPreconditionError(fmt::format("run {} changed meanwhile; ask again", e.run));
  }
  return absl::OkStatus();
}

// Cells that are run again give up their earlier outcome; its attempt stays stored, uncounted.
void CoordinatorState::Impl::On(const event::Rerun& e) {
  // A request is known by its id, also after the run that it opened has ended again.
  const Run* open = FindRun(e.run);
  const auto known = ended_runs_.find(e.run);
  if (!e.request_id.empty() &&
      ((open != nullptr && open->row.rerun_request_id == e.request_id) ||
       (known != ended_runs_.end() && known->second.rerun_request_id == e.request_id))) {
    const uint64_t cells = open != nullptr ? open->cells.size() : known->second.cells;
    const uint64_t specs = open != nullptr ? open->specs.size() : known->second.specs;
    return Answer(e.token, absl::OkStatus(), SubmitReply{e.run, cells, specs, true, {}});
  }
  if (absl::Status status = CheckRerun(e); !status.ok()) return Answer(e.token, std::move(status));
  std::unique_ptr<Run> run = LoadRun(*e.loaded);
  uint64_t reopened = 0;
  for (Cell& cell : run->cells) {
    if (!cell.row.outcome.has_value()) {
      ++reopened;
      continue;
    }
    const Outcome outcome = *cell.row.outcome;
    if (e.failed_only && !IsFailure(outcome) && outcome != Outcome::kCancelled &&
        !e.invalid.contains(cell.row.cell)) {
      continue;
    }
    if (!cell.row.counted_attempt.empty()) {
      batch_.uncounted_attempts.push_back(cell.row.counted_attempt);
    }
    run->Reopen(cell);
    batch_.cells.push_back(cell.row);
    ++reopened;
  }
  if (reopened == 0 && !run->cells.empty()) {
    return Answer(e.token, absl::FailedPreconditionError(fmt::format(
                               "run {} has no failed or invalid cell to run again", e.run)));
  }
  run->row.state = RunState::kWaiting;
  run->row.message.clear();
  run->row.binding_closed = !run->cells.empty();  // a run that found no target looks again
  run->row.generation += 1;
  run->row.rerun_request_id = e.request_id;
  run->row.ended_at_unix_ms = 0;
  run->bind_deadline = now_ + WaitOf(run->row.select);
  run->first_agent_deadline = std::max(run->bind_deadline, now_ + times_.first_agent);
  Run& added = *(runs_[e.run] = std::move(run));
  rotation_.push_back(e.run);
  ended_runs_.erase(e.run);
  lately_ended_.remove_if([&](const RunView& view) { return view.run == e.run; });
  Bind(added);
  PersistRun(added);
  SubmitReply reply{e.run, added.cells.size(), added.specs.size(), true, {}};
  ReviewRun(added);
  Notify(e.run);
  schedule_ = true;
  Answer(e.token, absl::OkStatus(), reply);
}

void CoordinatorState::Impl::On(const event::ImportRows& e) {
  ImportReply reply;
  for (const RunRow& run : e.rows.runs) {
    if (FindRun(run.id) != nullptr) {
      return Answer(e.token,
                    absl::FailedPreconditionError(fmt::format(
                        "run {} has not ended here; wait for it or cancel it first", run.id)));
    }
    reply.runs.push_back(run.id);
  }
  for (const RunRow& run : e.rows.runs) {
    if (ended_runs_.contains(run.id)) continue;
    // The other coordinator's unfinished run is finished as far as this one is concerned.
    const RunState state = IsEnded(run.state) ? run.state : RunState::kDone;
    ended_runs_[run.id] = {run.id,    run.request_id, run.digest,     state,
                           run.cells, run.specs,      run.generation, run.rerun_request_id};
  }
  batch_.import = e.rows;
  for (RunRow& run : batch_.import->runs) {
    if (!IsEnded(run.state)) run.state = RunState::kDone;
  }
  Answer(e.token, absl::OkStatus(), std::move(reply));
}

bool CoordinatorState::Impl::BindingOver(const Run& run) const {
  return now_ >= run.bind_deadline && (!run.targets.empty() || now_ >= run.first_agent_deadline);
}

void CoordinatorState::Impl::Bind(Run& run) {
  const size_t first = run.cells.size();
  if (!run.row.binding_closed) {
    for (const Target& target : run.finder.TargetsOf(fleet_)) {
      if (!run.HasTarget(target)) run.AddTarget(target);
    }
  }
  run.FindPlaces(fleet_, now_);
  if (run.cells.size() == first) return;
  for (size_t i = first; i < run.cells.size(); ++i) batch_.cells.push_back(run.cells[i].row);
  PersistRun(run);
  Notify(run.row.id);
}

// Every card that was asked for by name has been seen.
bool CoordinatorState::Impl::ListComplete(const Run& run) const {
  if (run.targets.empty()) return false;
  if (run.row.select.all_cards) return true;
  for (const std::string& name : run.row.select.cards) {
    bool seen = false;
    if (run.row.select.placement == Placement::kPerCard) {
      for (const Target& target : run.targets) seen = seen || SelectsByName(name, target.name);
    } else {
      for (const auto& [node_name, node] : fleet_.nodes()) {
        for (const std::string& card : node.cards) seen = seen || SelectsByName(name, card);
      }
    }
    if (!seen) return false;
  }
  return true;
}

// Cards that were asked for by name and never came become cells, so that they show in coverage and
// can be run again: lost, since no agent has them.
void CoordinatorState::Impl::CloseBinding(Run& run) {
  run.row.binding_closed = true;
  const Selection& select = run.row.select;
  const double waited =
      Seconds(run.targets.empty() ? std::max(WaitOf(select), times_.first_agent) : WaitOf(select));
  std::vector<std::string> missing;
  for (const std::string& name : select.cards) {
    const bool seen = std::any_of(run.targets.begin(), run.targets.end(),
                                  [&](const Target& t) { return SelectsByName(name, t.name); });
    if (seen || select.placement != Placement::kPerCard) continue;
    missing.push_back(name);
    const size_t first = run.cells.size();
    run.AddTarget({name, false});
    for (size_t i = first; i < run.cells.size(); ++i) {
      run.End(run.cells[i], Outcome::kLost, reason::kAgentLost,
              fmt::format("no agent with {} came within {:.0f} s", name, waited), nullptr);
      batch_.cells.push_back(run.cells[i].row);
    }
  }
  if (!missing.empty()) {
    run.row.message =
        fmt::format("no agent with {} came within {:.0f} s", fmt::join(missing, ", "), waited);
  } else if (run.targets.empty()) {
    run.row.message = fmt::format(
        "no agent with {} came within {:.0f} s, so nothing was run; `assay agents` shows who is "
        "there",
        select.all_cards ? std::string("a usable GPU or processor")
                         : fmt::format("{}", fmt::join(select.cards, " or ")),
        waited);
  } else if (!ListComplete(run)) {
    run.row.message = fmt::format("of the cards {}, not all came within {:.0f} s",
                                  fmt::join(select.cards, ", "), waited);
  }
  PersistRun(run);
  Notify(run.row.id);
}

void CoordinatorState::Impl::ReviewPlaceless(Run& run) {
  const bool nothing_else = run.gangs.empty() && run.queues.empty() && ListComplete(run);
  const bool settled = run.row.binding_closed || BindingOver(run) || nothing_else;
  const auto wait = WaitOf(run.row.select);
  bool changed = false;
  for (const uint32_t g : run.placeless) {
    Group& group = run.groups[g];
    if (group.pending == 0 || group.place.has_value()) continue;
    const auto without = now_ - group.without_place_since.value_or(now_);
    Outcome outcome = Outcome::kUnsupported;
    std::string code = group.reason;
    std::string message = group.message;
    const auto patience =
        group.admitted ? std::max(wait, times_.target_gone) : std::max(wait, times_.first_agent);
    if (group.absent || group.admitted) {
      if (without < patience) continue;
      if (group.absent || code == reason::kTooFewGpus) {
        outcome = Outcome::kLost;
        code = reason::kAgentLost;
        message = fmt::format("no agent with {} was connected for {:.0f} s{}{}",
                              run.targets[group.target].name, Seconds(patience),
                              message.empty() ? "" : ": ", message);
      }
    } else if (!settled) {
      continue;
    }
    for (const uint64_t number : group.cells) {
      Cell& cell = run.CellAt(number);
      if (!cell.Pending()) continue;
      run.End(cell, outcome, code, message, nullptr);
      batch_.cells.push_back(cell.row);
    }
    changed = true;
  }
  if (changed) Notify(run.row.id);
}

void CoordinatorState::Impl::ReviewRun(Run& run) {
  CheckRunLimit(run);
  if (run.row.state != RunState::kCancelling) {
    if (!run.row.binding_closed && !run.row.select.include_late && BindingOver(run)) {
      CloseBinding(run);
    }
    ReviewPlaceless(run);
    const bool idle = run.gangs.empty() && run.pending == 0;
    if (idle && !run.row.binding_closed && (BindingOver(run) || ListComplete(run))) {
      CloseBinding(run);
    }
  }
  if (run.gangs.empty() && run.pending == 0 && run.row.binding_closed) EndRun(run);
}

void CoordinatorState::Impl::EndRun(Run& run) {
  const bool cancelled = run.row.state == RunState::kCancelling;
  run.row.state = cancelled ? RunState::kCancelled : RunState::kDone;
  run.row.ended_at_unix_ms = WallMs();
  PersistRun(run);
  const std::string id = run.row.id;
  ended_runs_[id] = {id,
                     run.row.request_id,
                     run.row.digest,
                     run.row.state,
                     run.cells.size(),
                     run.specs.size(),
                     run.row.generation,
                     run.row.rerun_request_id};
  RunView view = MakeView(run, 0, now_);
  view.final = true;
  lately_ended_.push_front(std::move(view));
  // Watchers still read the last view; a bound in cells as well, since runs can be large.
  constexpr size_t kMostRuns = 64, kMostCells = 100'000;
  size_t runs = 0, cells = 0;
  for (auto it = lately_ended_.begin(); it != lately_ended_.end();) {
    ++runs;
    cells += it->ended.size();
    const bool too_many = runs > 1 && (runs > kMostRuns || cells > kMostCells);
    it = too_many ? lately_ended_.erase(it) : std::next(it);
  }
  if (reservation_.has_value() && reservation_->run == id) reservation_.reset();
  rotation_.remove(id);
  Notify(id);
  runs_.erase(id);  // `run` is gone
}

}  // namespace assay
