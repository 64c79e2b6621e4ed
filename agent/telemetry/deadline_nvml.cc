#include "agent/telemetry/deadline_nvml.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "common/clock/clock.h"
#include "common/sync/mutex.h"

namespace assay {

struct DeadlineNvml::Shared {
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
    : captured_(inner->captured()), deadlines_(deadlines), state_(std::make_shared<Shared>()) {
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
  auto task = std::make_shared<Shared::Task>();
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

template <class Answer, class Call>
absl::StatusOr<Answer> DeadlineNvml::Ask(const char* what, Call call) {
  auto answer = std::make_shared<absl::StatusOr<Answer>>(absl::UnknownError(""));
  absl::Status status =
      Run(what, deadlines_.sample, [answer, call](Nvml& nvml) { *answer = call(nvml); });
  if (!status.ok()) return status;
  return std::move(*answer);
}

absl::StatusOr<NvmlSample> DeadlineNvml::Sample(const std::string& uuid) {
  return Ask<NvmlSample>("sampling", [uuid](Nvml& nvml) { return nvml.Sample(uuid); });
}

absl::StatusOr<NvmlState> DeadlineNvml::State(const std::string& uuid) {
  return Ask<NvmlState>("reading a device's state",
                        [uuid](Nvml& nvml) { return nvml.State(uuid); });
}

absl::StatusOr<NvmlLink> DeadlineNvml::Link(const std::string& uuid) {
  return Ask<NvmlLink>("reading the PCIe link", [uuid](Nvml& nvml) { return nvml.Link(uuid); });
}

absl::StatusOr<std::vector<int64_t>> DeadlineNvml::Xids(const std::string& uuid) {
  return Ask<std::vector<int64_t>>("reading Xids", [uuid](Nvml& nvml) { return nvml.Xids(uuid); });
}

absl::StatusOr<std::vector<int64_t>> DeadlineNvml::ProcessIds(const std::string& uuid) {
  return Ask<std::vector<int64_t>>("listing processes",
                                   [uuid](Nvml& nvml) { return nvml.ProcessIds(uuid); });
}

}  // namespace assay
