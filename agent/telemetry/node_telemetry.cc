#include "agent/telemetry/node_telemetry.h"

#include <algorithm>
#include <utility>

#include "agent/telemetry/device_health.h"
#include "agent/telemetry/heat_session.h"
#include "agent/telemetry/sampling_session.h"

namespace assay {
namespace {

void SetBytes(Record& record, Field field, uint64_t bytes) {
  record.Set(field, static_cast<int64_t>(bytes)).IgnoreError();
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

// A processor: nothing to sample, the ranks' own usage and their control group's tell.
class ProcessorSession final : public TelemetrySession {
 public:
  ProcessorSession(const Clock* clock, Record base, uint64_t total_bytes,
                   const TelemetryOptions& options)
      : clock_(clock),
        record_(std::move(base)),
        total_bytes_(total_bytes),
        throttling_(options.proc_root, options.sys_root) {}
  void WindowBegin() override {
    throttling_.Begin();
    window_.Begin(clock_->Now());
  }
  void WindowEnd() override {
    window_.End(clock_->Now());
    throttling_.End();
  }
  Record Finish(std::span<const ProcessUsage> usage) override {
    uint64_t peak = 0;
    for (const ProcessUsage& rank : usage) peak = std::max(peak, rank.peak_resident_bytes);
    if (peak > 0) SetBytes(record_, Field::kDeviceUsedBytes, peak);
    if (total_bytes_ > 0) SetBytes(record_, Field::kDeviceTotalBytes, total_bytes_);
    throttling_.Fill(record_);
    window_.Fill(record_);
    return record_;
  }

 private:
  const Clock* const clock_;
  Record record_;
  const uint64_t total_bytes_;
  ThrottleWatch throttling_;
  WindowStatistics window_{0};  // its length alone
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
    return std::make_unique<ProcessorSession>(
        clock_, std::move(base), total_bytes ? total_bytes : machine_memory_bytes_, options_);
  }
  if (total_bytes > 0) SetBytes(base, Field::kDeviceTotalBytes, total_bytes);
  if (sampled.empty() || nvml_ == nullptr) return std::make_unique<BareSession>(std::move(base));
  // A captured reading is of the moment when it was captured, not of this attempt: no memory in
  // use, power, clock or temperature comes from it. What the card is set to it does say.
  if (std::any_of(sampled.begin(), sampled.end(), [](const Device& d) { return d.simulated; })) {
    DeviceHealth health(sampled.size());
    for (size_t i = 0; i < sampled.size(); ++i) health.Before(i, nvml_->State(sampled[i].uuid));
    health.FillSettings(base);
    return std::make_unique<BareSession>(std::move(base));
  }
  return std::make_unique<SamplingSession>(nvml_, clock_, options_, std::move(sampled),
                                           std::move(base));
}

std::unique_ptr<HeatWatch> NodeTelemetry::WatchHeat(std::span<const std::string> uuids) {
  if (nvml_ == nullptr || uuids.empty()) return nullptr;
  for (const std::string& uuid : uuids) {
    const auto found = std::find_if(devices_.begin(), devices_.end(),
                                    [&](const Device& device) { return device.uuid == uuid; });
    if (found == devices_.end() || found->kind == "cpu") return nullptr;
    if (found->simulated && !nvml_->captured_heats(uuid)) return nullptr;
  }
  return std::make_unique<HeatSession>(nvml_, clock_, options_.period,
                                       std::vector<std::string>(uuids.begin(), uuids.end()));
}

}  // namespace assay
