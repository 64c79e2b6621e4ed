// DeviceHealth: what an attempt's devices are set to, and their errors before and after it, folded
// into the fields of a record.
//
// One figure for all devices: counts are summed, the lowest limit and the narrowest link stand, a
// flag holds where it holds for every device. What one device does not say is not known of all.
// Pure. Thread rule: one owner.
#ifndef ASSAY_AGENT_TELEMETRY_DEVICE_HEALTH_H_
#define ASSAY_AGENT_TELEMETRY_DEVICE_HEALTH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/cell/ports.h"
#include "agent/telemetry/nvml.h"
#include "common/results/record.h"

namespace assay {

class DeviceHealth {
 public:
  explicit DeviceHealth(size_t devices) : devices_(devices) {}

  // What the device is set to, and its counts of errors, before anything of the attempt ran.
  void Before(size_t device, const absl::StatusOr<NvmlState>& state);
  // A later reading; the last one counts.
  void After(size_t device, const absl::StatusOr<NvmlState>& state);
  // In the window.
  void Link(size_t device, const absl::StatusOr<NvmlLink>& link);
  // Since the attempt began. One answer that is none, and they are not known.
  void Xids(size_t device, const absl::StatusOr<std::vector<int64_t>>& xids);

  // Settings alone: of a captured device, whose counts and link are of the moment of its capture.
  void FillSettings(Record& record) const;
  void Fill(Record& record) const;

  // What spoilt the attempt on this device: more uncorrected ECC errors than before, or an Xid that
  // says so (48, 94, 95), or one that says that the GPU is gone (79). Empty message: nothing.
  // Numbers: NVIDIA, "XID Errors".
  DeviceFault FaultOf(size_t device, const std::string& uuid) const;

 private:
  struct One {
    std::optional<NvmlState> before, after;
    std::optional<int> generation, width;
    std::optional<std::vector<int64_t>> xids;
    bool xids_lost = false;
  };
  // During the attempt; 0 where not known, and where the count fell, as it does when the driver is
  // loaded again.
  static uint64_t NewUncorrected(const One& device);

  std::vector<One> devices_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_TELEMETRY_DEVICE_HEALTH_H_
