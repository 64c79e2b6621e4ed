#include "coordinator/state_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace assay {
namespace {

// Deadlines of gangs while a run is under way; four a second reads well and costs nothing.
constexpr std::chrono::milliseconds kTickBusy{250};
// Only leases and sessions are watched.
constexpr std::chrono::milliseconds kTickConnected{1'000};
constexpr std::chrono::milliseconds kWatchInterval{250};

absl::Status ShuttingDown() {
  return absl::UnavailableError("the coordinator is shutting down; try again");
}

}  // namespace

void StateLoop::Start(Shell shell) {
  shell_ = std::move(shell);
  unfinished_ = state_.HasUnfinishedRuns();
  next_tick_ = clock_.Now();
  thread_ = std::thread([this] { Loop(); });
}

void StateLoop::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

bool StateLoop::Enqueue(Task task) {
  {
    MutexLock lock(mutex_);
    if (ended_ || stopping_) return false;
    tasks_.push_back(std::move(task));
  }
  wake_.NotifyOne();
  return true;
}

void StateLoop::Post(Event event, std::function<void()> after) {
  Enqueue([this, event = std::move(event), after = std::move(after)] {
    Handle(event);
    if (after) after();
  });
}

void StateLoop::Call(std::function<Event(ReplyToken)> make, const OnReply& on_reply) {
  const ReplyToken token = ++last_token_;
  const bool taken = Enqueue([this, token, make = std::move(make), on_reply] {
    questions_[token] = on_reply;
    Handle(make(token));
  });
  if (!taken) {
    Reply reply;
    reply.token = token;
    reply.status = ShuttingDown();
    on_reply(reply);
  }
}

bool StateLoop::Ask(std::function<void(const CoordinatorState&)> question) {
  return Enqueue([this, question = std::move(question)] { question(state_); });
}

void StateLoop::Watch(const std::string& run, const std::shared_ptr<WatchSink>& sink) {
  const bool taken = Enqueue([this, run, sink] {
    Watcher watcher;
    watcher.run = run;
    watcher.next = clock_.Now();
    watcher.sink = sink;
    watchers_.push_back(std::move(watcher));
  });
  if (!taken) sink->End(ShuttingDown());
}

void StateLoop::Loop() {
  while (true) {
    std::deque<Task> tasks;
    {
      MutexLock lock(mutex_);
      while (tasks_.empty() && !stopping_) {
        const std::optional<BootTime> deadline = NextDeadline();
        if (!deadline.has_value()) {
          wake_.Wait(mutex_);
          continue;
        }
        const auto left = *deadline - clock_.Now();
        if (left <= std::chrono::nanoseconds::zero()) break;
        wake_.WaitFor(mutex_, left);
      }
      if (stopping_) break;
      tasks.swap(tasks_);
    }
    for (const Task& task : tasks) task();
    if (NextDeadline().has_value() && clock_.Now() >= next_tick_) {
      Handle(event::Tick{});
      next_tick_ = clock_.Now() + (unfinished_ ? kTickBusy : kTickConnected);
    }
    ServeWatchers();
  }
  AnswerAllAtEnd();
}

std::optional<BootTime> StateLoop::NextDeadline() const {
  std::optional<BootTime> deadline;
  if (unfinished_ || !sessions_.empty() || state_.CommitsInFlight() > 0) deadline = next_tick_;
  for (const Watcher& watcher : watchers_) {
    if (watcher.dirty && (!deadline.has_value() || watcher.next < *deadline)) {
      deadline = watcher.next;
    }
  }
  return deadline;
}

void StateLoop::Handle(const Event& event) {
  if (const auto* hello = std::get_if<event::AgentHello>(&event)) sessions_.insert(hello->session);
  if (const auto* gone = std::get_if<event::AgentGone>(&event)) sessions_.erase(gone->session);
  CarryOut(state_.Step(event, clock_.Now(), clock_.WallNow()));
  const bool unfinished = state_.HasUnfinishedRuns();
  // From sleep to work: the next tick is not one second away.
  if (unfinished && !unfinished_) next_tick_ = clock_.Now() + kTickBusy;
  unfinished_ = unfinished;
}

void StateLoop::CarryOut(Actions actions) {
  if (actions.persist.has_value()) shell_.persist(*std::move(actions.persist));
  for (SendToAgent& send : actions.sends) shell_.send(std::move(send));
  for (const CloseSession& close : actions.closes) shell_.close(close.session);
  for (const Reply& reply : actions.replies) {
    const auto found = questions_.find(reply.token);
    if (found == questions_.end()) continue;
    const OnReply on_reply = std::move(found->second);
    questions_.erase(found);
    on_reply(reply);
  }
  for (const std::string& run : actions.notify_runs) {
    for (Watcher& watcher : watchers_) watcher.dirty = watcher.dirty || watcher.run == run;
  }
  if (!actions.halt.has_value()) return;
  // Who asked for what could not be made durable hears why, and does not try again in vain.
  Reply reply;
  reply.status = absl::InternalError(*actions.halt);
  for (auto& [token, on_reply] : std::exchange(questions_, {})) {
    reply.token = token;
    on_reply(reply);
  }
  shell_.halt(*std::move(actions.halt));
}

void StateLoop::ServeWatchers() {
  const BootTime now = clock_.Now();
  std::erase_if(watchers_, [&](Watcher& watcher) {
    if (watcher.sink->Gone()) return true;
    return watcher.dirty && now >= watcher.next && !Serve(watcher, now);
  });
}

bool StateLoop::Serve(Watcher& watcher, BootTime now) {
  watcher.next = now + kWatchInterval;
  if (!watcher.sink->Ready()) return true;
  const std::optional<RunView> view = state_.ViewOf(watcher.run, watcher.since, now);
  if (!view.has_value()) {
    watcher.sink->End(absl::NotFoundError("not in memory"));
    return false;
  }
  // Who hears that a run is over reads its results from the store, so they must be there.
  if (view->final) {
    if (!watcher.over_at.has_value()) watcher.over_at = state_.IssuedCommit();
    if (state_.DurableCommit() < *watcher.over_at) return true;
  }
  watcher.since = view->sequence;
  // While cells run, the running seconds change without an event.
  watcher.dirty = !view->active.empty();
  watcher.sink->Update(*view);
  return !view->final;
}

void StateLoop::AnswerAllAtEnd() {
  std::deque<Task> left;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    left.swap(tasks_);
  }
  // Questions among them must be answered and readers let go; nothing is persisted any more.
  shell_.persist = [](const Persist&) {};
  for (const Task& task : left) task();
  Reply reply;
  reply.status = ShuttingDown();
  for (auto& [token, on_reply] : questions_) {
    reply.token = token;
    on_reply(reply);
  }
  questions_.clear();
  for (Watcher& watcher : watchers_) watcher.sink->End(ShuttingDown());
  watchers_.clear();
}

}  // namespace assay
