#include "agent/telemetry/node_telemetry.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "agent/telemetry/exclusivity.h"
#include "agent/telemetry/process_ancestry.h"
#include "agent/telemetry/window_statistics.h"
#include "common/sync/mutex.h"

namespace assay {
namespace {

// The loop thread may wait this long for the first reading: ports.h allows 100 ms a call.
constexpr std::chrono::milliseconds kFirstReading{80};
// The process list is read once a second: it walks the driver's tables, and a neighbour stays.
constexpr std::chrono::seconds kProcessPeriod{1};

void SetBytes(Record& record, Field field, uint64_t bytes) {
  record.Set(field, static_cast<int64_t>(bytes)).IgnoreError();
}

// Of all the devices; not known where one of them does not say.
NvmlPowerLimits SumOfLimits(Nvml& nvml, const std::vector<Device>& devices) {
  NvmlPowerLimits sum{0.0, 0.0};
  for (const Device& device : devices) {
    const auto limits = nvml.PowerLimits(device.uuid);
    const NvmlPowerLimits known = limits.ok() ? *limits : NvmlPowerLimits{};
    const auto add = [](std::optional<double>& to, const std::optional<double>& watts) {
      to = to && watts ? std::optional(*to + *watts) : std::nullopt;
    };
    add(sum.enforced_watts, known.enforced_watts);
    add(sum.default_watts, known.default_watts);
  }
  return sum;
}

void SetLimits(Record& record, const NvmlPowerLimits& limits) {
  const auto set = [&](Field field, const std::optional<double>& watts) {
    if (watts) record.Set(field, *watts).IgnoreError();
  };
  set(Field::kPowerLimitWatts, limits.enforced_watts);
  set(Field::kPowerLimitDefaultWatts, limits.default_watts);
}

// Nothing to sample (a device that is unknown, gone or simulated): only what is known beforehand.
class BareSession final : public TelemetrySession {
 public:
  explicit BareSession(Record record) : record_(std::move(record)) {}
  void WindowBegin() override {}
  void WindowEnd() override {}
  Record Finish(std::span<const ProcessUsage>) override { return record_; }

 private:
  const Record record_;
};

// A processor: nothing to sample, the ranks' own usage tells.
class ProcessorSession final : public TelemetrySession {
 public:
  ProcessorSession(Record base, uint64_t total_bytes)
      : record_(std::move(base)), total_bytes_(total_bytes) {}
  void WindowBegin() override {}
  void WindowEnd() override {}
  Record Finish(std::span<const ProcessUsage> usage) override {
    uint64_t peak = 0;
    for (const ProcessUsage& rank : usage) peak = std::max(peak, rank.peak_resident_bytes);
    if (peak > 0) SetBytes(record_, Field::kDeviceUsedBytes, peak);
    if (total_bytes_ > 0) SetBytes(record_, Field::kDeviceTotalBytes, total_bytes_);
    return record_;
  }

 private:
  Record record_;
  const uint64_t total_bytes_;
};

class SamplingSession final : public TelemetrySession {
 public:
  SamplingSession(Nvml* nvml, const Clock* clock, const TelemetryOptions& options,
                  std::vector<Device> devices, Record base)
      : nvml_(nvml),
        clock_(clock),
        options_(options),
        devices_(std::move(devices)),
        base_(std::move(base)),
        statistics_(devices_.size()) {
    thread_ = std::thread([this] { Work(); });
    AwaitFirstReading();
  }

  ~SamplingSession() override {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

  void WindowBegin() override {
    MutexLock lock(mutex_);
    statistics_.Begin(clock_->Now());
    sample_now_ = true;
    changed_.NotifyAll();
  }

  void WindowEnd() override {
    MutexLock lock(mutex_);
    statistics_.End(clock_->Now());
  }

  Record Finish(std::span<const ProcessUsage>) override {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
    Record record = base_;
    statistics_.Fill(record);
    record.SetText(Field::kExclusive, exclusivity_.Word());
    if (used_before_) SetBytes(record, Field::kDeviceUsedBeforeBytes, *used_before_);
    SetLimits(record, limits_);
    return record;
  }

 private:
  void AwaitFirstReading() {
    MutexLock lock(mutex_);
    const BootTime until = BootClock::now() + kFirstReading;
    while (!first_done_ && BootClock::now() < until) {
      changed_.WaitFor(mutex_, until - BootClock::now());
    }
    // A reading that comes later would count the attempt's own memory as somebody else's.
    before_closed_ = true;
  }

  void Work() {
    ReadBefore();
    BootTime next_list = BootClock::now();
    for (;;) {
      for (size_t i = 0; i < devices_.size(); ++i) SampleOne(i);
      if (BootClock::now() >= next_list && InWindow()) {
        CheckProcesses();
        next_list = BootClock::now() + kProcessPeriod;
      }
      if (!SleepUntilNext()) return;
    }
  }

  void ReadBefore() {
    std::optional<uint64_t> most;
    Exclusivity exclusivity;
    for (const Device& device : devices_) {
      const auto sample = nvml_->Sample(device.uuid);
      const auto used = sample.ok() ? sample->memory_used_bytes : std::nullopt;
      exclusivity.Before(used, nvml_->ProcessIds(device.uuid));
      if (used) most = std::max(most.value_or(0), *used);
    }
    const NvmlPowerLimits limits = SumOfLimits(*nvml_, devices_);
    MutexLock lock(mutex_);
    limits_ = limits;
    if (!before_closed_) {
      used_before_ = most;
      exclusivity_ = exclusivity;
    }
    first_done_ = true;
    changed_.NotifyAll();
  }

  void SampleOne(size_t index) {
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

  void CheckProcesses() {
    for (const Device& device : devices_) {
      const auto pids = nvml_->ProcessIds(device.uuid);
      MutexLock lock(mutex_);
      if (!statistics_.in_window()) return;
      exclusivity_.During(
          pids, [this](int64_t pid) { return AncestryOf(options_.proc_root, pid, getpid()); });
    }
  }

  bool InWindow() {
    MutexLock lock(mutex_);
    return statistics_.in_window();
  }

  // False when the session is over.
  bool SleepUntilNext() {
    MutexLock lock(mutex_);
    const BootTime until = BootClock::now() + options_.period;
    while (!stopping_ && !sample_now_ && BootClock::now() < until) {
      changed_.WaitFor(mutex_, until - BootClock::now());
    }
    sample_now_ = false;
    return !stopping_;
  }

  Nvml* const nvml_;
  const Clock* const clock_;
  const TelemetryOptions options_;
  const std::vector<Device> devices_;
  const Record base_;
  Mutex mutex_;
  CondVar changed_;
  WindowStatistics statistics_ ASSAY_GUARDED_BY(mutex_);
  Exclusivity exclusivity_ ASSAY_GUARDED_BY(mutex_);
  std::optional<uint64_t> used_before_ ASSAY_GUARDED_BY(mutex_);
  NvmlPowerLimits limits_ ASSAY_GUARDED_BY(mutex_);
  bool first_done_ ASSAY_GUARDED_BY(mutex_) = false;
  bool before_closed_ ASSAY_GUARDED_BY(mutex_) = false;
  bool sample_now_ ASSAY_GUARDED_BY(mutex_) = false;
  bool stopping_ ASSAY_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

NodeTelemetry::NodeTelemetry(Nvml* nvml, const Clock* clock, TelemetryOptions options)
    : nvml_(nvml), clock_(clock), options_(std::move(options)) {}

void NodeTelemetry::SetDevices(const NodeInventory& inventory) {
  devices_ = inventory.devices;
  cpu_model_ = inventory.cpu_model;
  agent_version_ = inventory.agent_version;
  machine_memory_bytes_ = inventory.memory_bytes;
}

std::unique_ptr<TelemetrySession> NodeTelemetry::Begin(std::span<const std::string> uuids) {
  Record base;
  if (!cpu_model_.empty()) base.SetText(Field::kCpuModel, cpu_model_);
  if (!agent_version_.empty()) base.SetText(Field::kAgentVersion, agent_version_);
  std::vector<Device> sampled;
  bool processor = false;
  uint64_t total_bytes = 0;
  for (const std::string& uuid : uuids) {
    const auto found = std::find_if(devices_.begin(), devices_.end(),
                                    [&](const Device& device) { return device.uuid == uuid; });
    if (found == devices_.end()) continue;
    if (!found->driver_version.empty()) {
      base.SetText(Field::kDriverVersion, found->driver_version);
    }
    total_bytes = std::max(total_bytes, found->memory_total_bytes);
    if (found->kind == "cpu") {
      processor = true;
    } else {
      sampled.push_back(*found);
    }
  }
  if (sampled.empty() && processor) {
    return std::make_unique<ProcessorSession>(std::move(base),
                                              total_bytes ? total_bytes : machine_memory_bytes_);
  }
  if (total_bytes > 0) SetBytes(base, Field::kDeviceTotalBytes, total_bytes);
  if (sampled.empty() || nvml_ == nullptr) return std::make_unique<BareSession>(std::move(base));
  // A captured reading is of the moment when it was captured, not of this attempt: no memory in
  // use, power, clock or temperature comes from it. What the card is set to it does say.
  if (std::any_of(sampled.begin(), sampled.end(), [](const Device& d) { return d.simulated; })) {
    SetLimits(base, SumOfLimits(*nvml_, sampled));
    return std::make_unique<BareSession>(std::move(base));
  }
  return std::make_unique<SamplingSession>(nvml_, clock_, options_, std::move(sampled),
                                           std::move(base));
}

}  // namespace assay
