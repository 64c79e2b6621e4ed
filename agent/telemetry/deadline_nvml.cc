#include "agent/telemetry/deadline_nvml.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "common/clock/clock.h"
#include "common/sync/mutex.h"

namespace assay {

struct DeadlineNvml::State {
  struct Task {
    std::function<void(Nvml&)> call;
    bool done = false;
    bool abandoned = false;
  };
  Mutex mutex;
  CondVar changed;
  std::deque<std::shared_ptr<Task>> queue ASSAY_GUARDED_BY(mutex);
  std::shared_ptr<Task> running ASSAY_GUARDED_BY(mutex);
  BootTime running_since ASSAY_GUARDED_BY(mutex){};
  bool stopping ASSAY_GUARDED_BY(mutex) = false;
  bool ended ASSAY_GUARDED_BY(mutex) = false;
  std::unique_ptr<Nvml> inner;  // used by the thread alone

  void Work() {
    for (;;) {
      std::shared_ptr<Task> task;
      {
        MutexLock lock(mutex);
        while (queue.empty() && !stopping) changed.Wait(mutex);
        if (stopping) break;
        task = std::move(queue.front());
        queue.pop_front();
        if (task->abandoned) continue;
        running = task;
        running_since = BootClock::now();
      }
      task->call(*inner);
      MutexLock lock(mutex);
      task->done = true;
      running.reset();
      changed.NotifyAll();
    }
    inner.reset();
    MutexLock lock(mutex);
    ended = true;
    changed.NotifyAll();
  }
};

DeadlineNvml::DeadlineNvml(std::unique_ptr<Nvml> inner, NvmlDeadlines deadlines)
    : captured_(inner->captured()), deadlines_(deadlines), state_(std::make_shared<State>()) {
  state_->inner = std::move(inner);
  thread_ = std::thread([state = state_] { state->Work(); });
}

DeadlineNvml::~DeadlineNvml() {
  bool ended = false;
  {
    MutexLock lock(state_->mutex);
    state_->stopping = true;
    state_->changed.NotifyAll();
    const BootTime until = BootClock::now() + deadlines_.sample;
    while (!state_->ended && BootClock::now() < until) {
      state_->changed.WaitFor(state_->mutex, until - BootClock::now());
    }
    ended = state_->ended;
  }
  // A thread that hangs in the driver cannot be joined; it owns its state and harms nobody.
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

absl::Status DeadlineNvml::Run(const char* what, std::chrono::milliseconds deadline,
                               std::function<void(Nvml&)> call) {
  MutexLock lock(state_->mutex);
  const BootTime begin = BootClock::now();
  if (state_->running != nullptr && state_->running->abandoned) {
    return absl::DeadlineExceededError(
        fmt::format("NVML has not answered for {:.0f} s: the driver hangs",
                    std::chrono::duration<double>(begin - state_->running_since).count()));
  }
  auto task = std::make_shared<State::Task>();
  task->call = std::move(call);
  state_->queue.push_back(task);
  state_->changed.NotifyAll();
  const BootTime until = begin + deadline;
  while (!task->done && BootClock::now() < until) {
    state_->changed.WaitFor(state_->mutex, until - BootClock::now());
  }
  if (task->done) return absl::OkStatus();
  task->abandoned = true;
  return absl::DeadlineExceededError(fmt::format(
      "NVML did not answer within {} ms ({}): the driver hangs", deadline.count(), what));
}

// The answer lives in a shared object: a call that comes back late writes there, not on the stack
// of a caller that has left.
absl::StatusOr<NvmlSystem> DeadlineNvml::Describe() {
  auto answer = std::make_shared<absl::StatusOr<NvmlSystem>>(absl::UnknownError(""));
  absl::Status status = Run("describing the GPUs", deadlines_.describe,
                            [answer](Nvml& nvml) { *answer = nvml.Describe(); });
  if (!status.ok()) return status;
  return std::move(*answer);
}

absl::StatusOr<NvmlSample> DeadlineNvml::Sample(const std::string& uuid) {
  auto answer = std::make_shared<absl::StatusOr<NvmlSample>>(absl::UnknownError(""));
  absl::Status status = Run("sampling", deadlines_.sample,
                            [answer, uuid](Nvml& nvml) { *answer = nvml.Sample(uuid); });
  if (!status.ok()) return status;
  return std::move(*answer);
}

absl::StatusOr<NvmlPowerLimits> DeadlineNvml::PowerLimits(const std::string& uuid) {
  auto answer = std::make_shared<absl::StatusOr<NvmlPowerLimits>>(absl::UnknownError(""));
  absl::Status status = Run("reading power limits", deadlines_.sample,
                            [answer, uuid](Nvml& nvml) { *answer = nvml.PowerLimits(uuid); });
  if (!status.ok()) return status;
  return std::move(*answer);
}

absl::StatusOr<std::vector<int64_t>> DeadlineNvml::ProcessIds(const std::string& uuid) {
  auto answer = std::make_shared<absl::StatusOr<std::vector<int64_t>>>(absl::UnknownError(""));
  absl::Status status = Run("listing processes", deadlines_.sample,
                            [answer, uuid](Nvml& nvml) { *answer = nvml.ProcessIds(uuid); });
  if (!status.ok()) return status;
  return std::move(*answer);
}

}  // namespace assay
