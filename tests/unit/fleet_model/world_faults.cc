// What goes wrong in a FleetWorld, and how it heals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/fleet_model/fleet_world.h"

namespace assay::model {

using std::chrono::milliseconds;
using std::chrono::seconds;

void FleetWorld::Disturb() {
  switch (dice_.Roll(32)) {
    case 0:
    case 1:
      return BreakProgram();
    case 2:
      return BreakWire();
    case 3:
      return User();
    case 4:
      return dice_.OneIn(3) ? BreakStore() : BreakTime();
    case 5:
      if (repeats_.empty()) return;
      Post(repeats_.back());
      return repeats_.pop_back();
    case 6:
    case 7:
      return TellGone();
    case 8:
    case 9:
    case 10:
      return Commit(1);
    case 11:
    case 12:
    case 13:
    case 14:
    case 15:
      return Advance(dice_.Between(milliseconds(50), milliseconds(4000)));
    default:
      Commit(static_cast<size_t>(dice_.Roll(3)));
      for (int i = 0; i < 6; ++i) PumpOne();
  }
}

void FleetWorld::BreakProgram() {
  AgentModel& agent = AnyAgent();
  switch (dice_.Roll(12)) {
    case 0:
      return agent.Kill();
    case 1:
      return dice_.OneIn(3) ? agent.Reboot() : agent.Stop(Now());
    case 2:
      return agent.Pause();
    case 3:
      if (state_ != nullptr && dice_.OneIn(2)) return CrashCoordinator();
      return;
    case 4:
      return agent.ChangeInventory();
    case 5:
    case 6:
    case 7:
      if (state_ == nullptr) Boot();
      return;
    case 8:
      for (const auto& each : agents_) each->Resume();
      return;
    default:
      if (!agent.refused()) agent.Start(Now());
  }
}

void FleetWorld::BreakWire() {
  AgentModel& agent = AnyAgent();
  const auto it = streams_.find(agent.stream());
  switch (dice_.Roll(6)) {
    case 0:
      unplugged_.insert(&agent);
      if (it != streams_.end()) it->second.cut_up = it->second.cut_down = true;
      return;
    case 1:
      if (it != streams_.end()) it->second.cut_up = true;
      return;
    case 2:
      if (it != streams_.end()) it->second.cut_down = true;
      return;
    case 3:  // both ends learn of it, each in its time
      if (it == streams_.end() || !it->second.coordinator_open) return;
      it->second.coordinator_open = false;
      it->second.up.clear();
      if (it->second.greeted) gone_.push_back(it->first);
      return;
    default:
      unplugged_.clear();
      for (auto& [handle, stream] : streams_) stream.cut_up = stream.cut_down = false;
  }
}

void FleetWorld::BreakStore() {
  if (!dice_.OneIn(3) || state_ == nullptr || uncommitted_.empty()) return;
  Post(event::CommitFailed{"no space left on device"});
  EXPECT_TRUE(state_ == nullptr) << "a coordinator went on after a failed commit";
  coverage_.Saw("coordinator", "halted");
}

void FleetWorld::BreakTime() {
  if (dice_.OneIn(2)) {
    clock_.StepWall(std::chrono::hours(dice_.Roll(2) == 0 ? -30 : 30));
    return;
  }
  // Nothing arrives for so long, and everybody acts by his own clock. In steps, since a machine
  // that does not act in time (a suspended one) can keep no promise about what it runs.
  for (int i = 10 + dice_.Roll(40); i > 0; --i) Advance(milliseconds(1000));
}

ReplyToken FleetWorld::NewToken(const char* what) {
  awaiting_[++last_token_] = what;
  return last_token_;
}

void FleetWorld::Submit(event::SubmitRun submit) {
  submitted_.push_back(std::move(submit));
  Resubmit(submitted_.back());
}

// The same request, as after an answer that did not come.
void FleetWorld::Resubmit(event::SubmitRun submit) {
  if (state_ == nullptr) return;
  submit.token = NewToken("submit");
  Post(submit);
}

void FleetWorld::RerunSomething() {
  for (const auto& [id, run] : rows_.runs) {
    if (!IsEnded(run.state) || !dice_.OneIn(2)) continue;
    event::Rerun rerun;
    rerun.token = NewToken("rerun");
    rerun.run = id;
    rerun.failed_only = dice_.OneIn(2);
    rerun.request_id = fmt::format("rerun-{}", last_token_);
    rerun.loaded = rows_.Run(id);
    coverage_.Saw("user", "rerun");
    return Post(rerun);
  }
}

void FleetWorld::User() {
  if (state_ == nullptr) return;
  const std::string& node = AnyAgent().name();
  switch (dice_.Roll(8)) {
    case 0:
      if (rows_.runs.empty() || !dice_.OneIn(3)) return;
      coverage_.Saw("user", "cancel");
      return Post(event::CancelRun{NewToken("cancel"), rows_.runs.begin()->first});
    case 1:
      return RerunSomething();
    case 2:
      return Post(event::DrainNode{NewToken("drain"), node, true});
    case 3:
    case 4:
      return Post(event::DrainNode{NewToken("undrain"), node, false});
    case 5:
      return Post(event::AskDoctor{NewToken("doctor"), node});
    default:
      if (submitted_.empty()) return;
      return Resubmit(
          submitted_[static_cast<size_t>(dice_.Roll(static_cast<int>(submitted_.size())))]);
  }
}

void FleetWorld::Calm() {
  faults_ = false;
  repeats_.clear();
  unplugged_.clear();
  for (auto& [handle, stream] : streams_) stream.cut_up = stream.cut_down = false;
  if (state_ == nullptr) Boot();
  for (const auto& agent : agents_) {
    agent->SetFaults(false);
    agent->Resume();
    if (guests_.contains(agent.get())) agent->Kill();
  }
  // The coordinator has to know that a guest is gone before its name is free for its owner, who may
  // have been refused for good: somebody starts him again.
  Pass(milliseconds(10));
  for (const auto& agent : agents_) {
    if (guests_.contains(agent.get())) continue;
    if (agent->refused()) agent->Kill();
    agent->ChangeInventory();
    agent->Start(Now());
    Post(event::DrainNode{NewToken("undrain"), agent->name(), false});
  }
  for (const event::SubmitRun& submit : submitted_) Resubmit(submit);
}

}  // namespace assay::model
