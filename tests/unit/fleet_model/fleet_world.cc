#include "tests/unit/fleet_model/fleet_world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/coordinator/core/bench.h"
#include "tests/unit/fleet_model/trace.h"

namespace assay::model {

using std::chrono::milliseconds;
using std::chrono::seconds;

FleetWorld::FleetWorld(uint64_t seed, Coverage& coverage) : dice_(seed), coverage_(coverage) {
  times_.join = seconds(60);  // within the limit of a cell, so that each of the two is met
  Boot();
}
FleetWorld::~FleetWorld() = default;

AgentModel& FleetWorld::AddAgent(const NodeInventory& inventory, bool guest) {
  agents_.push_back(std::make_unique<AgentModel>(inventory, *this, dice_, coverage_));
  agents_.back()->SetFaults(faults_);
  if (guest) guests_.insert(agents_.back().get());
  return *agents_.back();
}

AgentModel& FleetWorld::AnyAgent() {
  return *agents_[static_cast<size_t>(dice_.Roll(static_cast<int>(agents_.size())))];
}

// --- the coordinator

void FleetWorld::Boot() {
  Trace(Now(), "the coordinator starts");
  CoordinatorDeps deps;
  deps.card_of = [](const Device& device) { return device.raw_name; };
  deps.choose_stack = &Bench::ChooseByModel;
  deps.new_id = [this](WallTime) { return fmt::format("{:026}", ++last_id_); };
  deps.new_seed = [this] { return dice_.Next(); };
  state_ = std::make_unique<CoordinatorState>(times_, deps);
  state_->Load(rows_.Snapshot(), clock_.Now());
}

// What was not durable is gone, and with it whoever waited for an answer.
void FleetWorld::CrashCoordinator() {
  Trace(Now(), "the coordinator crashes");
  state_.reset();
  uncommitted_.clear();
  awaiting_.clear();
  gone_.clear();
  repeats_.clear();
  for (auto& [handle, stream] : streams_) {
    stream.coordinator_open = false;
    stream.up.clear();
  }
}

void FleetWorld::Post(const Event& event) {
  if (state_ == nullptr) return;
  if (!std::holds_alternative<event::Tick>(event)) Trace(Now(), 0, event);
  Take(state_->Step(event, clock_.Now(), clock_.WallNow()));
}

void FleetWorld::Take(const Actions& actions) {
  if (actions.persist.has_value()) uncommitted_.push_back(*actions.persist);
  for (const SendToAgent& send : actions.sends) TakeSend(send);
  for (const Reply& reply : actions.replies) TakeReply(reply);
  for (const CloseSession& close : actions.closes) {
    const auto it = streams_.find(close.session);
    if (it == streams_.end() || !it->second.coordinator_open) continue;
    it->second.coordinator_open = false;
    it->second.up.clear();
    if (it->second.greeted) gone_.push_back(close.session);
  }
  if (!actions.halt.has_value()) return;
  EXPECT_TRUE(actions.sends.empty() && actions.replies.empty()) << "spoke after a failed commit";
  CrashCoordinator();
}

void FleetWorld::NoteAttempt(const std::string& attempt, const char* phase) {
  phases_[attempt] = phase;
  coverage_.Saw("gang", phase);
}

void FleetWorld::TakeSend(const SendToAgent& send) {
  const auto it = streams_.find(send.session);
  if (it == streams_.end() || !it->second.coordinator_open) return;
  Stream& stream = it->second;
  const std::string& node = stream.agent->name();
  if (const auto* prepare = std::get_if<message::Prepare>(&send.message)) {
    const bool first = prepare->members[0].node == node;
    NoteAttempt(prepare->attempt, first ? "prepare_first" : "prepare_others");
    std::set<std::string> nodes;
    for (const MemberRow& member : prepare->members) nodes.insert(member.node);
    offers_.try_emplace(prepare->attempt,
                        Offer{prepare->run, prepare->cell, clock_.Now(), nodes.size()});
  } else if (const auto* start = std::get_if<message::Start>(&send.message)) {
    NoteAttempt(start->attempt, "started");
    EXPECT_TRUE(rows_.attempts.contains(start->attempt)) << "started before it was durable";
  } else if (const auto* abort = std::get_if<message::Abort>(&send.message)) {
    const std::string& phase = phases_[abort->attempt];
    const bool started = phase == "started" || phase == "joined";
    if (phase.starts_with("prepare")) NoteAttempt(abort->attempt, "released");
    if (started) NoteAttempt(abort->attempt, "ending");
  } else if (const auto* ack = std::get_if<message::ReportAck>(&send.message)) {
    const auto row = rows_.attempts.find(ack->attempt);
    if (ran_.contains(ack->attempt)) {
      EXPECT_TRUE(row != rows_.attempts.end() && row->second.state == AttemptState::kEnded)
          << "acknowledged " << ack->attempt << " before its result was durable";
    }
  }
  stream.down.push_back(send.message);
}

void FleetWorld::TakeReply(const Reply& reply) {
  EXPECT_EQ(awaiting_.erase(reply.token), 1u) << "answered twice, or without a question";
  if (const auto* body = std::get_if<SubmitReply>(&reply.body)) {
    EXPECT_TRUE(rows_.runs.contains(body->run)) << "answered before it was durable";
  }
}

void FleetWorld::Commit(size_t most) {
  while (!uncommitted_.empty() && most-- > 0) {
    const Persist persist = uncommitted_.front();
    uncommitted_.pop_front();
    CheckBatch(persist.batch);
    rows_.Apply(persist.batch);
    for (const AttemptRow& row : persist.batch.attempts) {
      Trace(Now(), fmt::format("durable: attempt {} {} {}", row.id,
                               row.state == AttemptState::kEnded ? "ended" : "started",
                               row.outcome ? OutcomeName(*row.outcome) : ""));
    }
    for (const AttemptRow& row : persist.batch.attempts) {
      if (row.state == AttemptState::kEnded) NoteAttempt(row.id, "ended");
      if (row.state == AttemptState::kEnded && !row.counted)
        coverage_.Saw("attempt", "tried_again");
    }
    if (!persist.batch.late_attempts.empty()) coverage_.Saw("attempt", "late");
    Post(event::CommitDone{persist.n, 0, 0});
  }
}

void FleetWorld::CheckBatch(const Batch& batch) const {
  for (const CellRow& row : batch.cells) {
    const auto it = rows_.cells.find({row.run, row.cell});
    const auto run = rows_.runs.find(row.run);
    const bool reopened = run != rows_.runs.end() && IsEnded(run->second.state);
    if (it != rows_.cells.end() && it->second.outcome.has_value() && !reopened) {
      EXPECT_EQ(it->second.outcome, row.outcome) << "a terminal state changed";
      EXPECT_EQ(it->second.counted_attempt, row.counted_attempt);
    }
    if (row.outcome == Outcome::kOk) CheckOk(row, batch);
  }
}

// A result is ok only where every rank's process of that attempt said so.
void FleetWorld::CheckOk(const CellRow& row, const Batch& batch) const {
  const auto in_batch =
      std::find_if(batch.attempts.begin(), batch.attempts.end(),
                   [&](const AttemptRow& each) { return each.id == row.counted_attempt; });
  ASSERT_TRUE(in_batch != batch.attempts.end()) << "ok without an attempt";
  EXPECT_TRUE(in_batch->counted && in_batch->reported && !in_batch->late);
  for (uint32_t rank = 0; rank < in_batch->members.size(); ++rank) {
    EXPECT_TRUE(said_ok_.contains({row.counted_attempt, rank}))
        << row.counted_attempt << " is ok, and its rank " << rank << " never said so";
  }
}

// --- the wires

SessionHandle FleetWorld::Dial(AgentModel& agent) {
  if (state_ == nullptr || unplugged_.contains(&agent)) return 0;
  streams_[++last_session_].agent = &agent;
  return last_session_;
}

void FleetWorld::HangUp(SessionHandle handle) {
  const auto it = streams_.find(handle);
  if (it == streams_.end()) return;
  it->second.agent_open = false;
  it->second.down.clear();
  // What was written may have left, or not.
  while (faults_ && !it->second.up.empty() && dice_.OneIn(3)) it->second.up.pop_back();
}

void FleetWorld::Up(SessionHandle handle, Event event) {
  const auto it = streams_.find(handle);
  if (it != streams_.end() && it->second.agent_open && it->second.coordinator_open) {
    it->second.up.push_back(std::move(event));
  }
}

// False where nothing can move.
bool FleetWorld::PumpUp(SessionHandle handle) {
  const auto it = streams_.find(handle);
  if (it == streams_.end() || state_ == nullptr) return false;
  Stream& stream = it->second;
  if (!stream.coordinator_open || stream.cut_up) return false;
  if (stream.up.empty()) {
    if (stream.agent_open) return false;
    stream.coordinator_open = false;
    if (stream.greeted) gone_.push_back(handle);
    return true;
  }
  const Event event = stream.up.front();
  stream.up.pop_front();
  if (std::holds_alternative<event::AgentHello>(event)) stream.greeted = true;
  if (const auto* joined = std::get_if<event::RanksJoined>(&event)) {
    if (phases_[joined->attempt] == "started") NoteAttempt(joined->attempt, "joined");
  }
  // What an agent may say again in a later session. Heartbeats and inventories have an order.
  const bool repeatable = event.index() >= Event(event::GangReady{}).index() &&
                          event.index() <= Event(event::AttemptReport{}).index();
  Post(event);
  if (!faults_ || !repeatable) return true;
  if (dice_.OneIn(20)) Post(event);
  if (dice_.OneIn(20)) repeats_.push_back(event);
  return true;
}

bool FleetWorld::PumpDown(SessionHandle handle) {
  const auto it = streams_.find(handle);
  if (it == streams_.end()) return false;
  Stream& stream = it->second;
  if (stream.agent_open && (stream.cut_down || stream.agent->paused())) return false;
  if (!stream.agent_open) {
    if (!stream.coordinator_open) streams_.erase(it);
    return false;
  }
  if (!stream.down.empty()) {
    const CoordinatorMessage message = stream.down.front();
    stream.down.pop_front();
    AgentModel& agent = *stream.agent;  // `stream` may go with what the agent does
    Trace(Now(), handle, message);
    agent.Receive(message, clock_.Now());
    if (faults_ && dice_.OneIn(25)) agent.Receive(message, clock_.Now());
    return true;
  }
  if (stream.coordinator_open) return false;
  stream.agent_open = false;
  stream.agent->OnClosed(handle, clock_.Now());
  return true;
}

bool FleetWorld::PumpOne() {
  if (streams_.empty()) return false;
  auto it = streams_.begin();
  std::advance(it, dice_.Roll(static_cast<int>(streams_.size())));
  const SessionHandle handle = it->first;
  return dice_.OneIn(2) ? PumpUp(handle) : PumpDown(handle);
}

bool FleetWorld::PumpAll() {
  bool any = false;
  std::vector<SessionHandle> handles;
  for (const auto& [handle, stream] : streams_) handles.push_back(handle);
  for (const SessionHandle handle : handles) {
    while (PumpUp(handle)) any = true;
    while (PumpDown(handle)) any = true;
  }
  return any;
}

void FleetWorld::TellGone() {
  if (gone_.empty()) return;
  const SessionHandle session = gone_.front();
  gone_.pop_front();
  Post(event::AgentGone{session});
}

// --- time

void FleetWorld::Advance(milliseconds by) {
  clock_.Advance(by);
  for (const auto& agent : agents_) {
    agent->Live(clock_.Now());
    // In a calm world whoever was stopped or killed is soon started again.
    const bool down = !agent->running() && !agent->refused() && !guests_.contains(agent.get());
    if (!faults_ && down) agent->Start(clock_.Now());
  }
  Post(event::Tick{});
}

void FleetWorld::Pass(milliseconds by) {
  Advance(by);
  for (bool any = true; any;) {
    while (!gone_.empty()) TellGone();
    Commit(1000);
    any = PumpAll() || !uncommitted_.empty() || !gone_.empty();
  }
}

bool FleetWorld::PassUntilDone(seconds most) {
  const BootTime end = clock_.Now() + most;
  const auto done = [&] {
    return state_ != nullptr && !state_->HasUnfinishedRuns() && awaiting_.empty() &&
           std::all_of(agents_.begin(), agents_.end(), [&](const auto& agent) {
             return guests_.contains(agent.get()) || agent->HoldsNothing();
           });
  };
  while (!done() && clock_.Now() < end) {
    auto step = milliseconds(2000);
    for (const auto& agent : agents_) {
      const std::optional<BootTime> next = agent->NextDeadline();
      if (!next) continue;
      const auto until = std::chrono::ceil<milliseconds>(*next - clock_.Now());
      step = std::clamp(until, milliseconds(10), step);
    }
    Pass(step);
  }
  return done();
}

}  // namespace assay::model
