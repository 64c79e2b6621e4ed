#include "cli/follow.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "common/status/status.h"

namespace assay::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{250};  // of the block's clock, and of the look at a lost signal
// A coordinator that stood this long was no part of the last loss: tries are counted anew.
constexpr std::chrono::seconds kStands{20};

class Follower {
 public:
  Follower(Session& session, std::string run, const FollowOptions& options, ProgressView& view,
           const Clock& clock)
      : session_(session), run_(std::move(run)), options_(options), view_(view), clock_(clock) {}

  FollowResult Run() {
    watch_ = session_.control().Watch(run_);
    connected_ = clock_.Now();
    while (!done_) {
      TakeUpdates();
      if (!done_) TakeEnd();
      if (!done_) Wait();
    }
    return std::move(result_);
  }

 private:
  void TakeUpdates() {
    while (auto update = watch_->Take()) {
      view_.Update(*update);
      // A prefix or `last` may mean another run later: go on with what it meant first.
      if (!update->run.empty()) run_ = update->run;
      const bool final = update->final;
      result_.last = std::move(*update);
      if (final) {
        done_ = true;
        return;
      }
    }
  }

  void TakeEnd() {
    const auto end = watch_->Ended();
    if (!end) return;
    if (!end->ok() && !IsLost(*end)) {
      result_.status = *end;
      done_ = true;
      return;
    }
    // An orderly end before the final update is a coordinator that shuts down.
    Reconnect(end->ok() ? absl::UnavailableError("the coordinator ended the connection") : *end);
  }

  void Reconnect(absl::Status status) {
    if (clock_.Now() - connected_ >= kStands) tries_ = 0;
    view_.Note("the coordinator went away (" + Message(status) + "); connecting again");
    watch_.reset();
    if (cancelling_) cancel_by_ = clock_.Now() + options_.cancel_limit;
    while (tries_ < options_.most_tries && !(cancelling_ && clock_.Now() >= cancel_by_)) {
      const milliseconds pause = options_.first_pause * (1 << std::min(tries_, 6));
      ++tries_;
      if (InterruptWithin(pause) && !InterruptedWhileAway()) return;
      if (cancelling_) {
        session_.GoOnAfterInterrupt(
            std::chrono::ceil<std::chrono::seconds>(cancel_by_ - clock_.Now()));
      }
      status = session_.Open();
      if (status.ok()) {
        connected_ = clock_.Now();
        // Whether the cancel was durable before the loss is not known; once more does no harm.
        if (cancelling_) (void)session_.control().Cancel(run_);
        watch_ = session_.control().Watch(run_);
        return;
      }
      if (status.code() == absl::StatusCode::kCancelled && !InterruptedWhileAway()) return;
    }
    result_.status = absl::UnavailableError(
        fmt::format("run {} was left{}, since its coordinator cannot be reached: {}", run_,
                    cancelling_ ? " and is perhaps not cancelled" : "", Message(status)));
    done_ = true;
  }

  bool InterruptWithin(milliseconds time) const {
    pollfd interrupt{interrupt_fd(), POLLIN, 0};
    return poll(&interrupt, interrupt_fd() >= 0 ? 1 : 0, static_cast<int>(time.count())) > 0;
  }

  // False when that ends the following: there is nobody to ask, and nothing to ask for.
  bool InterruptedWhileAway() {
    if (options_.on_interrupt == OnInterrupt::kCancelRun) {
      BeginCancel();
      return true;
    }
    result_.interrupted = true;
    result_.status = absl::CancelledError(
        fmt::format("interrupted while the coordinator of run {} was away", run_));
    done_ = true;
    return false;
  }

  void BeginCancel() {
    result_.interrupted = true;
    cancelling_ = true;
    tries_ = 0;
    cancel_by_ = clock_.Now() + options_.cancel_limit;
    session_.GoOnAfterInterrupt(options_.cancel_limit);
    view_.Note("cancelling; waiting until every process is gone (Ctrl-C again leaves at once)");
  }

  void Wait() {
    pollfd ready[2] = {{watch_->ready_fd(), POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
    const nfds_t count = interrupt_fd() >= 0 ? 2 : 1;
    if (poll(ready, count, static_cast<int>(kTick.count())) > 0 && count == 2 &&
        (ready[1].revents & POLLIN) != 0) {
      Interrupted();
    }
    view_.Tick();
  }

  void Interrupted() {
    if (options_.on_interrupt == OnInterrupt::kLeave) {
      result_.interrupted = true;
      done_ = true;
      return;
    }
    BeginCancel();
    const auto state = session_.control().Cancel(run_);
    // FailedPrecondition: it ended by itself in the same moment, and Watch says so.
    if (state.ok() || state.status().code() == absl::StatusCode::kFailedPrecondition) return;
    if (IsLost(state.status())) {
      Reconnect(state.status());
    } else {
      result_.status = state.status();
      done_ = true;
    }
  }

  // After the first Ctrl-C its descriptor stays readable: it is looked at no more.
  int interrupt_fd() const { return cancelling_ ? -1 : options_.interrupt_fd; }

  Session& session_;
  std::string run_;
  const FollowOptions& options_;
  ProgressView& view_;
  const Clock& clock_;
  std::unique_ptr<RunWatch> watch_;
  BootTime connected_;
  int tries_ = 0;
  BootTime cancel_by_;  // while cancelling: when to give a lost coordinator up
  bool cancelling_ = false;
  bool done_ = false;
  FollowResult result_;
};

}  // namespace

FollowResult Follow(Session& session, const std::string& run, const FollowOptions& options,
                    ProgressView& view, const Clock& clock) {
  return Follower(session, run, options, view, clock).Run();
}

}  // namespace assay::cli
