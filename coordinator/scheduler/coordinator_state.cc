#include "coordinator/scheduler/coordinator_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/scheduler/state_impl.h"

namespace assay {

CoordinatorTimes CoordinatorTimes::WithHeartbeat(ms heartbeat) {
  CoordinatorTimes times;
  times.heartbeat = heartbeat;
  times.lease = 3 * heartbeat;
  times.lifeline = heartbeat;
  times.kill_grace = std::min(times.kill_grace, heartbeat / 2);
  return times;
}

CoordinatorState::CoordinatorState(CoordinatorTimes times, CoordinatorDeps deps)
    : impl_(std::make_unique<Impl>(times, std::move(deps))) {}
CoordinatorState::~CoordinatorState() = default;
void CoordinatorState::Load(StateSnapshot snapshot, BootTime now) {
  impl_->Load(std::move(snapshot), now);
}
Actions CoordinatorState::Step(const Event& event, BootTime now, WallTime wall) {
  return impl_->Step(event, now, wall);
}
std::optional<RunView> CoordinatorState::ViewOf(std::string_view run, uint64_t since,
                                                BootTime now) const {
  return impl_->ViewOf(run, since, now);
}
std::vector<AgentView> CoordinatorState::Agents() const { return impl_->Agents(); }
bool CoordinatorState::HasUnfinishedRuns() const { return impl_->HasUnfinishedRuns(); }
uint64_t CoordinatorState::CommitsInFlight() const { return impl_->CommitsInFlight(); }
uint64_t CoordinatorState::IssuedCommit() const { return impl_->IssuedCommit(); }
uint64_t CoordinatorState::DurableCommit() const { return impl_->DurableCommit(); }

Actions CoordinatorState::Impl::Step(const Event& event, BootTime now, WallTime wall) {
  actions_ = Actions();
  if (halted_) return {};
  now_ = now;
  wall_ = wall;
  std::visit([this](const auto& e) { On(e); }, event);
  if (schedule_ && !halted_) Schedule();
  schedule_ = false;
  if (!batch_.Empty() && !halted_) {
    actions_.persist = Persist{++issued_, std::move(batch_)};
  }
  batch_ = Batch();
  for (Held& held : fresh_) {
    held.after = issued_;
    outbox_.push_back(std::move(held));
  }
  fresh_.clear();
  Flush();
  actions_.notify_runs.assign(notify_.begin(), notify_.end());
  notify_.clear();
  return std::move(actions_);
}

void CoordinatorState::Impl::Send(SessionHandle session, CoordinatorMessage message) {
  fresh_.push_back({0, SendToAgent{session, std::move(message), 0}});
}

void CoordinatorState::Impl::SendToNode(std::string_view name, CoordinatorMessage message) {
  const Node* node = fleet_.Find(name);
  if (node != nullptr && node->Up()) Send(node->session, std::move(message));
}

void CoordinatorState::Impl::Answer(ReplyToken token, absl::Status status, ReplyBody body) {
  fresh_.push_back({0, Reply{token, std::move(status), std::move(body), 0}});
}

void CoordinatorState::Impl::CloseNow(SessionHandle session) {
  sessions_.erase(session);
  actions_.closes.push_back({session});
}

// Hands out what is durable. Everything waits for the last commit that was issued before it, not
// only for its own: one order, no message that overtakes another.
void CoordinatorState::Impl::Flush() {
  if (halted_) return;
  while (!outbox_.empty() && outbox_.front().after <= durable_) {
    Held held = std::move(outbox_.front());
    outbox_.pop_front();
    if (auto* send = std::get_if<SendToAgent>(&held.what)) {
      if (!sessions_.contains(send->session)) continue;
      send->after_commit = held.after;
      actions_.sends.push_back(std::move(*send));
    } else {
      auto& reply = std::get<Reply>(held.what);
      reply.after_commit = held.after;
      actions_.replies.push_back(std::move(reply));
    }
  }
}

void CoordinatorState::Impl::On(const event::CommitDone& e) {
  if (e.n <= durable_ || e.n > issued_) return;
  durable_ = e.n;
  for (Held& held : outbox_) {
    if (held.after > e.n) break;
    auto* reply = std::get_if<Reply>(&held.what);
    if (reply == nullptr) continue;
    if (auto* import = std::get_if<ImportReply>(&reply->body)) {
      import->attempts_new = e.attempts_new;
      import->attempts_known = e.attempts_known;
    }
  }
}

void CoordinatorState::Impl::On(const event::CommitFailed& e) {
  halted_ = true;
  outbox_.clear();
  fresh_.clear();
  actions_.halt = fmt::format(
      "the store could not make results durable, so the coordinator stops: {}; free space or "
      "repair "
      "the disk, then start it again",
      e.message);
}

void CoordinatorState::Impl::On(const event::Tick&) {
  if (places_dirty_) FindAllPlaces();
  for (auto& [name, node] : fleet_.nodes()) CheckNode(node);
  ReviewDoctorQuestions();
  std::vector<std::string> attempts;
  for (const auto& [attempt, gang] : gangs_) attempts.push_back(attempt);
  for (const std::string& attempt : attempts) CheckGang(attempt);
  std::vector<std::string> ids;
  for (const auto& [id, run] : runs_) ids.push_back(id);
  for (const std::string& id : ids) {
    if (Run* run = FindRun(id); run != nullptr) ReviewRun(*run);
  }
  schedule_ = true;
}

void CoordinatorState::Impl::FindAllPlaces() {
  constexpr std::chrono::seconds kLeastTimeBetween{1};
  if (places_found_ != BootTime{} && now_ - places_found_ < kLeastTimeBetween) {
    places_dirty_ = true;
    return;
  }
  places_dirty_ = false;
  places_found_ = now_;
  std::vector<std::string> ids;
  for (const auto& [id, run] : runs_) ids.push_back(id);
  for (const std::string& id : ids) {
    Run* run = FindRun(id);
    if (run == nullptr) continue;
    Bind(*run);
    ReviewRun(*run);
  }
  schedule_ = true;
}

Run* CoordinatorState::Impl::FindRun(std::string_view id) {
  const auto it = runs_.find(id);
  return it == runs_.end() ? nullptr : it->second.get();
}

const Run* CoordinatorState::Impl::FindRun(std::string_view id) const {
  const auto it = runs_.find(id);
  return it == runs_.end() ? nullptr : it->second.get();
}

}  // namespace assay
