// What must hold in a FleetWorld.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/fleet_model/fleet_world.h"

namespace assay::model {

// No two attempts of one cell are ever alive at once, and no two processes are on one device.
void FleetWorld::Spawned(const RunnerProcess& mine) {
  ran_.insert(mine.attempt);
  for (const auto& agent : agents_) {
    for (const RunnerProcess& other : agent->processes()) {
      if (other.uuid == mine.uuid) {
        ADD_FAILURE() << mine.attempt << " and " << other.attempt << " run on " << mine.uuid;
      }
      if (other.attempt == mine.attempt) continue;
      EXPECT_FALSE(other.run == mine.run && other.cell == mine.cell)
          << other.attempt << " still runs on " << agent->name() << " when " << mine.attempt
          << " of the same cell starts";
    }
  }
}

void FleetWorld::Ended(const RunnerProcess& process) {
  if (process.said_ok) said_ok_.insert({process.attempt, process.rank});
}

void FleetWorld::Finished(const AttemptReport& report) {
  for (const RankReport& rank : report.ranks) {
    coverage_.Saw("rank", rank.reason.empty() ? "ok" : rank.reason);
    EXPECT_TRUE(rank.outcome != Outcome::kOk || said_ok_.contains({report.attempt, rank.rank}))
        << report.attempt << " rank " << rank.rank << " is ok and never said so";
  }
}

void FleetWorld::Forgot(const std::string& attempt, const std::string& node) {
  forgotten_.insert({attempt, node});
}

void FleetWorld::CheckEnd() {
  std::map<std::pair<std::string, uint64_t>, int> counted;
  for (const auto& [id, row] : rows_.attempts) {
    EXPECT_EQ(row.state, AttemptState::kEnded) << id;
    coverage_.Saw("outcome", OutcomeName(row.outcome.value_or(Outcome::kLost)));
    coverage_.Saw("reason", row.reason);
    if (row.counted) ++counted[{row.run, row.cell}];
  }
  for (const auto& [key, cell] : rows_.cells) {
    ASSERT_TRUE(cell.outcome.has_value()) << "cell " << key.second << " never ended";
    EXPECT_EQ(counted[key], cell.counted_attempt.empty() ? 0 : 1);
    coverage_.Saw("outcome", OutcomeName(*cell.outcome));
    coverage_.Saw("reason", cell.reason);
    if (cell.counted_attempt.empty()) {
      EXPECT_NE(cell.outcome, Outcome::kOk);
      continue;
    }
    EXPECT_EQ(rows_.attempts.at(cell.counted_attempt).outcome, cell.outcome);
  }
  for (const auto& [id, run] : rows_.runs) {
    EXPECT_TRUE(IsEnded(run.state));
    coverage_.Saw("run", RunStateName(run.state));
  }
  for (const auto& [attempt, node] : forgotten_) {
    const auto row = rows_.attempts.find(attempt);
    ASSERT_TRUE(row != rows_.attempts.end()) << attempt << " was acknowledged and is not stored";
    // Of a gang over two nodes one may have reported and the other been lost.
    const bool alone = std::all_of(
        row->second.members.begin(), row->second.members.end(),
        [&](const MemberRow& member) { return member.node == row->second.members[0].node; });
    EXPECT_TRUE(!alone || row->second.reported || row->second.late)
        << "the report of " << attempt << " was acknowledged, and its row does not have it: "
        << OutcomeName(row->second.outcome.value_or(Outcome::kFail)) << ", " << row->second.message;
  }
  for (const AgentView& view : state_->Agents()) EXPECT_TRUE(view.held.empty()) << view.state;
  EXPECT_TRUE(awaiting_.empty()) << awaiting_.begin()->second << " was never answered";
}

void FleetWorld::NoteStates(const std::string& kind) {
  for (const auto& agent : agents_) {
    if (!guests_.contains(agent.get())) agent->NoteStates(kind);
  }
  if (state_ == nullptr) return coverage_.Saw(kind + "coordinator", "down");
  for (const AgentView& view : state_->Agents()) coverage_.Saw(kind + "node", view.state);
  for (const auto& [id, row] : rows_.runs) {
    const std::optional<RunView> view = state_->ViewOf(id, UINT64_MAX, clock_.Now());
    if (!view.has_value()) continue;
    coverage_.Saw(kind + "run", RunStateName(view->state));
    if (view->done < view->cells && view->active.empty()) coverage_.Saw(kind + "cell", "pending");
    for (const ActiveCell& active : view->active) coverage_.Saw(kind + "cell", active.phase);
  }
  for (const auto& [attempt, phase] : phases_) coverage_.Saw(kind + "gang", phase);
}

std::string FleetWorld::Waiting() const {
  std::string text;
  if (state_ == nullptr) return "the coordinator is down";
  for (const auto& [id, row] : rows_.runs) {
    const std::optional<RunView> view = state_->ViewOf(id, UINT64_MAX, clock_.Now());
    if (!view.has_value() || view->final) continue;
    text += fmt::format("run {} ({}): {} of {} cells; {}\n", id, RunStateName(view->state),
                        view->done, view->cells, view->waiting_for);
    for (const ActiveCell& active : view->active) {
      text += fmt::format("  {} on {}: {}\n", active.label, active.node, active.phase);
    }
  }
  for (const auto& agent : agents_) {
    text += fmt::format("{}{}: {} processes\n", agent->name(),
                        agent->HoldsNothing() ? "" : " holds something", agent->processes().size());
  }
  return text;
}

}  // namespace assay::model
