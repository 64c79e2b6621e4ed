// NodeTelemetry: DeviceTelemetry over an Nvml. Each session samples its devices at 10 Hz from a
// thread of its own, which sleeps on a condition variable between samples; no session, no thread.
//
// Simulated devices are not sampled: what was captured of them is no figure of an attempt. Begin
// waits for the first reading, at most 80 ms; what has not answered by then stays not known.
// Thread rule: as DeviceTelemetry says; the Nvml must outlive every session.
#ifndef ASSAY_AGENT_TELEMETRY_NODE_TELEMETRY_H_
#define ASSAY_AGENT_TELEMETRY_NODE_TELEMETRY_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/cell/ports.h"
#include "agent/telemetry/nvml.h"
#include "agent/telemetry/sampling_session.h"
#include "common/clock/clock.h"

namespace assay {

class NodeTelemetry final : public DeviceTelemetry {
 public:
  // `nvml` may be null: a node without a driver. Both outlive this object.
  NodeTelemetry(Nvml* nvml, const Clock* clock, TelemetryOptions options = {});

  // What the last Inventory::Collect saw: kinds and sizes of the devices, and the fields cpu_model,
  // agent_version and driver_version of every record. Call it after each.
  void SetDevices(const NodeInventory& inventory);

  std::unique_ptr<TelemetrySession> Begin(std::span<const std::string> device_uuids) override;
  std::unique_ptr<HeatWatch> WatchHeat(std::span<const std::string> device_uuids) override;

 private:
  Nvml* const nvml_;
  const Clock* const clock_;
  const TelemetryOptions options_;
  std::vector<Device> devices_;
  std::string cpu_model_;
  std::string agent_version_;
  uint64_t machine_memory_bytes_ = 0;
};

}  // namespace assay

#endif  // ASSAY_AGENT_TELEMETRY_NODE_TELEMETRY_H_
