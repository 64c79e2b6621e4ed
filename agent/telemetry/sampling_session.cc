#include "agent/telemetry/sampling_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/host/proc_files.h"
#include "agent/telemetry/process_ancestry.h"

namespace assay {
namespace {

// The loop thread may wait this long for a reading: ports.h allows 100 ms a call.
constexpr std::chrono::milliseconds kLongestWait{80};
// The process list walks the driver's tables, and a neighbour stays; a link changes seldom.
constexpr std::chrono::seconds kSeldom{1};
constexpr size_t kMostNames = 16;

}  // namespace

SamplingSession::SamplingSession(Nvml* nvml, const Clock* clock, TelemetryOptions options,
                                 std::vector<Device> devices, Record base)
    : nvml_(nvml),
      clock_(clock),
      options_(std::move(options)),
      devices_(std::move(devices)),
      base_(std::move(base)),
      statistics_(devices_.size()),
      throttling_(options_.proc_root, options_.sys_root),
      health_(devices_.size()) {
  thread_ = std::thread([this] { Work(); });
  MutexLock lock(mutex_);
  AwaitUntil(first_done_);
  // A reading that comes later would count the attempt's own memory as somebody else's.
  before_closed_ = true;
}

SamplingSession::~SamplingSession() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void SamplingSession::WindowBegin() {
  MutexLock lock(mutex_);
  throttling_.Begin();
  statistics_.Begin(clock_->Now());
  sample_now_ = true;
  changed_.NotifyAll();
}

void SamplingSession::WindowEnd() {
  MutexLock lock(mutex_);
  statistics_.End(clock_->Now());
  throttling_.End();
}

Record SamplingSession::Finish(std::span<const ProcessUsage>) {
  MutexLock lock(mutex_);
  after_wanted_ = true;
  changed_.NotifyAll();
  AwaitUntil(after_done_);
  stopping_ = true;
  changed_.NotifyAll();
  Record record = base_;
  statistics_.Fill(record);
  health_.Fill(record);
  throttling_.Fill(record);
  record.SetText(Field::kExclusive, exclusivity_.Word());
  if (exclusivity_.foreign()) {
    NameForeign();
    std::vector<std::string> others;
    for (const auto& [pid, name] : foreign_names_) others.push_back(name);
    record.SetList(Field::kForeignProcesses, others).IgnoreError();
  }
  if (used_before_) {
    record.Set(Field::kDeviceUsedBeforeBytes, static_cast<int64_t>(*used_before_)).IgnoreError();
  }
  return record;
}

std::vector<DeviceFault> SamplingSession::Faults() {
  MutexLock lock(mutex_);
  std::vector<DeviceFault> faults;
  for (size_t i = 0; i < devices_.size(); ++i) {
    DeviceFault fault = health_.FaultOf(i, devices_[i].uuid);
    if (!fault.message.empty()) faults.push_back(std::move(fault));
  }
  return faults;
}

void SamplingSession::AwaitUntil(const bool& done) {
  const BootTime until = BootClock::now() + kLongestWait;
  while (!done && BootClock::now() < until) changed_.WaitFor(mutex_, until - BootClock::now());
}

void SamplingSession::Work() {
  ReadBefore();
  BootTime next_seldom{}, next_xids{};
  for (;;) {
    for (size_t i = 0; i < devices_.size(); ++i) SampleOne(i);
    if (BootClock::now() >= next_seldom && InWindow()) {
      ReadSeldom();
      next_seldom = BootClock::now() + kSeldom;
    }
    if (BootClock::now() >= next_xids) {
      ReadXids();
      next_xids = BootClock::now() + kSeldom;
    }
    if (!SleepUntilNext()) break;
  }
  ReadAfter();
}

void SamplingSession::ReadBefore() {
  std::optional<uint64_t> most;
  Exclusivity exclusivity;
  for (const Device& device : devices_) {
    const auto sample = nvml_->Sample(device.uuid);
    const auto used = sample.ok() ? sample->memory_used_bytes : std::nullopt;
    exclusivity.Before(used, nvml_->ProcessIds(device.uuid));
    if (used) most = std::max(most.value_or(0), *used);
  }
  {
    MutexLock lock(mutex_);
    if (!before_closed_) {
      used_before_ = most;
      exclusivity_ = exclusivity;
      NameForeign();
    }
    first_done_ = true;
    changed_.NotifyAll();
  }
  for (size_t i = 0; i < devices_.size(); ++i) {
    // Those of before this attempt are nobody's here.
    nvml_->Xids(devices_[i].uuid).IgnoreError();
    const auto state = nvml_->State(devices_[i].uuid);
    MutexLock lock(mutex_);
    health_.Before(i, state);
  }
}

void SamplingSession::ReadAfter() {
  {
    MutexLock lock(mutex_);
    if (!after_wanted_) return;
  }
  ReadXids();
  for (size_t i = 0; i < devices_.size(); ++i) {
    const auto state = nvml_->State(devices_[i].uuid);
    MutexLock lock(mutex_);
    health_.After(i, state);
  }
  MutexLock lock(mutex_);
  after_done_ = true;
  changed_.NotifyAll();
}

void SamplingSession::SampleOne(size_t index) {
  // Stamped before the call: a reading is never placed inside a window that began during it.
  const BootTime at = clock_->Now();
  auto sample = nvml_->Sample(devices_[index].uuid);
  if (!sample.ok()) return;
  if (devices_[index].kind == "mig") {
    // The board's sensors are the parent's, shared by all its slices.
    NvmlSample of_slice;
    of_slice.memory_used_bytes = sample->memory_used_bytes;
    *sample = of_slice;
  }
  MutexLock lock(mutex_);
  statistics_.Add(index, at, *sample);
}

void SamplingSession::ReadSeldom() {
  for (size_t i = 0; i < devices_.size(); ++i) {
    const auto pids = nvml_->ProcessIds(devices_[i].uuid);
    const auto link = nvml_->Link(devices_[i].uuid);
    MutexLock lock(mutex_);
    if (!statistics_.in_window()) return;
    exclusivity_.During(
        pids, [this](int64_t pid) { return AncestryOf(options_.proc_root, pid, getpid()); });
    NameForeign();
    health_.Link(i, link);
  }
}

void SamplingSession::ReadXids() {
  for (size_t i = 0; i < devices_.size(); ++i) {
    const auto xids = nvml_->Xids(devices_[i].uuid);
    MutexLock lock(mutex_);
    health_.Xids(i, xids);
  }
}

void SamplingSession::NameForeign() {
  if (!exclusivity_.foreign()) return;
  for (const int64_t pid : *exclusivity_.foreign()) {
    if (foreign_names_.contains(pid) || foreign_names_.size() == kMostNames) continue;
    std::string name =
        ReadFileText(fmt::format("{}/{}/comm", options_.proc_root, pid), 64).value_or("");
    while (!name.empty() && name.back() == '\n') name.pop_back();
    foreign_names_[pid] = fmt::format("{} ({})", name.empty() ? "not visible here" : name, pid);
  }
}

bool SamplingSession::InWindow() {
  MutexLock lock(mutex_);
  return statistics_.in_window();
}

// False when the session is over.
bool SamplingSession::SleepUntilNext() {
  MutexLock lock(mutex_);
  const BootTime until = BootClock::now() + options_.period;
  while (!stopping_ && !after_wanted_ && !sample_now_ && BootClock::now() < until) {
    changed_.WaitFor(mutex_, until - BootClock::now());
  }
  sample_now_ = false;
  return !stopping_ && !after_wanted_;
}

}  // namespace assay
