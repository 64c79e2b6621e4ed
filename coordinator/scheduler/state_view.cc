// What watchers and `assay agents` see.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "common/text/number_format.h"
#include "coordinator/cell/cell_record.h"
#include "coordinator/scheduler/state_impl.h"

namespace assay {
namespace {

// Above what a heartbeat takes on a bad network; such a clock is wrong, not late.
constexpr int64_t kClocksApartMs = 5'000;

}  // namespace

std::optional<RunView> CoordinatorState::Impl::ViewOf(std::string_view id, uint64_t since,
                                                      BootTime now) const {
  if (const Run* run = FindRun(id); run != nullptr) return MakeView(*run, since, now);
  for (const RunView& view : lately_ended_) {
    if (view.run != id) continue;
    RunView copy = view;
    const auto skip = static_cast<std::ptrdiff_t>(std::min<uint64_t>(since, copy.ended.size()));
    copy.ended.erase(copy.ended.begin(), copy.ended.begin() + skip);
    return copy;
  }
  return std::nullopt;
}

RunView CoordinatorState::Impl::MakeView(const Run& run, uint64_t since, BootTime now) const {
  RunView view;
  view.run = run.row.id;
  view.name = run.row.name;
  view.state = run.row.state;
  view.message = run.row.message;
  view.cells = run.cells.size();
  view.outcomes = run.outcomes;
  for (const auto& [name, count] : run.outcomes) view.done += count;
  view.sequence = run.ended.size();
  for (uint64_t i = since; i < run.ended.size(); ++i) view.ended.push_back(run.ended[i]);
  for (const std::string& attempt : run.gangs) {
    const auto it = gangs_.find(attempt);
    if (it == gangs_.end()) continue;
    const Gang& gang = it->second;
    const Cell& cell = run.CellAt(gang.cell);
    ActiveCell active;
    active.cell = gang.cell;
    active.label = CellLabel(run.SpecOf(cell), cell.row);
    active.node = gang.row.node;
    active.phase = !gang.Started() ? "prepare" : gang.all_joined ? "load" : "start";
    if (!gang.progress.phase.empty()) active.phase = gang.progress.phase;
    if (gang.phase == GangPhase::kEnding) active.phase = "stop";
    active.step = gang.progress.step;
    active.throughput = gang.progress.throughput;
    if (deps_.unit_of) active.unit = deps_.unit_of(run.SpecOf(cell).model);
    active.seconds_left = gang.progress.seconds_left;
    if (gang.Started()) active.seconds_running = Seconds(now - gang.started);
    active.attempt_number = gang.Started() ? gang.row.number : cell.row.attempts + 1;
    view.active.push_back(std::move(active));
  }
  std::sort(view.active.begin(), view.active.end(),
            [](const ActiveCell& a, const ActiveCell& b) { return a.cell < b.cell; });
  view.seconds_left = SecondsLeft(run, now);
  if (run.gangs.empty() && !IsEnded(run.row.state)) view.waiting_for = WaitingFor(run, now);
  return view;
}

// By the mean time of a cell of this run once one has ended; before that by the caps of the
// stopping rule, which is an upper bound.
double CoordinatorState::Impl::SecondsLeft(const Run& run, BootTime now) const {
  constexpr double kStartSeconds =
      20;  // process, libraries, device and warm-up, until one is known
  const bool measured = run.ended_attempts > 0;
  const double mean = measured ? run.ended_seconds / static_cast<double>(run.ended_attempts) : 0;
  double left = measured
                    ? mean * static_cast<double>(run.pending)
                    : run.pending_bound_seconds + kStartSeconds * static_cast<double>(run.pending);
  const size_t lanes = std::max<size_t>(1, run.gangs.size());
  left /= static_cast<double>(lanes);
  double longest = 0;
  for (const std::string& attempt : run.gangs) {
    const auto it = gangs_.find(attempt);
    if (it == gangs_.end()) continue;
    const Gang& gang = it->second;
    const double cap = run.SpecOf(run.CellAt(gang.cell)).stop.max_seconds + kStartSeconds;
    const double ran = gang.Started() ? Seconds(now - gang.started) : 0;
    const double rest =
        gang.progress.seconds_left > 0 ? gang.progress.seconds_left : (measured ? mean : cap) - ran;
    longest = std::max(longest, rest);
  }
  return left + longest;
}

std::string CoordinatorState::Impl::WaitingFor(const Run& run, BootTime now) const {
  if (run.row.state == RunState::kCancelling) return "";
  if (run.targets.empty()) {
    const bool none = std::none_of(fleet_.nodes().begin(), fleet_.nodes().end(),
                                   [](const auto& entry) { return entry.second.Up(); });
    if (run.row.select.all_cards) {
      return none ? "an agent to connect" : "an agent with a usable GPU or processor";
    }
    return fmt::format("an agent with {}", fmt::join(run.row.select.cards, " or "));
  }
  std::string busy, whose, rest, drain;
  for (const auto& [key, queue] : run.queues) {
    for (const Candidate& candidate : run.places[key.place].candidates) {
      const Node* node = fleet_.Find(candidate.node);
      if (node == nullptr || !node->Up()) continue;
      if (const auto gang = gangs_.find(node->gang); gang != gangs_.end()) {
        busy = node->name;
        whose = PriorityOf(gang->second.run) > run.row.select.priority
                    ? "a run with a higher priority"
                    : "another run";
      }
      if (node->Draining()) drain = node->name;
      if (node->rest.until > now) rest = node->rest.why;
      for (const auto& [uuid, device] : node->device_rests) {
        if (device.until > now) rest = device.why;
      }
    }
  }
  if (!rest.empty()) return fmt::format("{}; it is offered again soon", rest);
  if (!busy.empty()) return fmt::format("its turn: {} runs a cell of {}", busy, whose);
  if (!drain.empty()) return fmt::format("{}, which is draining", drain);
  for (const uint32_t g : run.placeless) {
    const Group& group = run.groups[g];
    if (group.pending == 0) continue;
    const std::string& target = run.targets[group.target].name;
    return group.absent ? fmt::format("an agent with {}", target)
                        : fmt::format("a place for {} of {}: {}", Counted(group.pending, "cell"),
                                      target, group.message);
  }
  if (run.pending == 0 && !run.row.binding_closed) {
    return fmt::format("an agent with {}", fmt::join(run.row.select.cards, " or "));
  }
  return "";
}

std::string CoordinatorState::Impl::StateOf(const Node& node) const {
  if (!node.Up()) return "lost";
  if (node.Draining()) return node.gang.empty() ? "drained" : "draining";
  return node.rest.refusals >= times_.refusals_to_rest ? "resting" : "up";
}

std::vector<HeldCell> CoordinatorState::Impl::HeldBy(const Node& node) const {
  const auto it = gangs_.find(node.gang);
  if (it == gangs_.end()) return {};
  const Gang& gang = it->second;
  HeldCell held{node.gang, gang.run, gang.cell, ""};
  if (const Run* run = FindRun(gang.run); run != nullptr) {
    const Cell& cell = run->CellAt(gang.cell);
    held.label = CellLabel(run->SpecOf(cell), cell.row);
  }
  return {std::move(held)};
}

std::vector<AgentView> CoordinatorState::Impl::Agents() const {
  std::vector<AgentView> agents;
  for (const auto& [name, node] : fleet_.nodes()) {
    // A drain outlasts the coordinator, so it shows before its node is back.
    if (!node.seen && !node.user_draining) continue;
    AgentView view;
    view.inventory = node.inventory;
    view.inventory.node = name;
    view.address = node.address;
    view.last_seen_unix_ms = node.last_seen_unix_ms;
    view.cards = node.cards;
    view.state = StateOf(node);
    view.draining = node.user_draining;
    view.held = HeldBy(node);
    for (const auto& [uuid, rest] : node.device_rests) {
      if (rest.refusals < times_.refusals_to_rest) continue;
      view.inventory.warnings.push_back(
          fmt::format("{} gets no cell for a while, then one as a probe: {}", uuid, rest.why));
    }
    if (node.Up() && std::abs(node.clock_ahead_ms) >= kClocksApartMs) {
      view.inventory.warnings.push_back(
          fmt::format("its clock is {:.0f} s {} the coordinator's: times of its results are off by "
                      "that, and no "
                      "figure is measured by it",
                      static_cast<double>(std::abs(node.clock_ahead_ms)) / 1000,
                      node.clock_ahead_ms > 0 ? "ahead of" : "behind"));
    }
    agents.push_back(std::move(view));
  }
  return agents;
}

}  // namespace assay
