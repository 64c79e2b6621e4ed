// Nvml: what the agent asks of NVIDIA's management library, in a few coarse calls.
//
// What a card, a vGPU or a MIG slice does not support is an empty optional, never a zero. Texts are
// as the driver gives them (any bytes): whoever shows them scrubs them. Every implementation may
// block (a sick driver hangs): the agent calls through DeadlineNvml only.
// Thread rule: any thread.
#ifndef ASSAY_AGENT_TELEMETRY_NVML_H_
#define ASSAY_AGENT_TELEMETRY_NVML_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

struct NvmlMigSlice {
  std::string uuid;     // MIG-...
  std::string name;     // "NVIDIA A100-SXM4-40GB MIG 1g.5gb"; older drivers give the parent's name
  std::string profile;  // 1g.5gb
  uint64_t memory_total_bytes = 0;
  std::optional<int> sm_count;
};

struct NvmlPowerLimits {
  std::optional<double> enforced_watts;
  std::optional<double> default_watts;
};

struct NvmlDevice {
  std::string uuid;
  std::string name;
  int index = 0;  // NVML's: by PCI bus
  uint64_t memory_total_bytes = 0;
  std::optional<int> cc_major, cc_minor;
  std::optional<int> sm_count;
  std::string pci_bus_id;  // 00000000:3B:00.0; empty where not known
  std::optional<bool> ecc_enabled;
  std::optional<uint64_t> ecc_uncorrected_volatile;  // since the driver was loaded
  std::optional<bool> remap_pending;  // row remap or page retirement waits for a reset
  std::optional<bool> remap_failed;
  std::optional<bool> persistence;  // mode on: the driver stays loaded without a client
  std::optional<int> pcie_width, pcie_width_max;
  NvmlPowerLimits power_limits;
  bool mig_enabled = false;
  std::vector<NvmlMigSlice> slices;
  std::vector<std::string> faults;  // one sentence each: this device answered in part only
};

struct NvmlSystem {
  std::string driver_version;
  std::vector<NvmlDevice> devices;  // by index
};

// One reading of a device or of a slice.
struct NvmlSample {
  std::optional<double> power_watts;
  std::optional<double> sm_clock_hertz;
  std::optional<double> memory_clock_hertz;
  std::optional<double> temperature_celsius;
  std::optional<uint64_t> memory_used_bytes;
  std::optional<uint64_t> throttle_reasons;  // bits of nvmlClocksEventReasons, below
  std::optional<double> energy_joules;       // since the driver was loaded
};

// Bits of throttle_reasons (nvmlClocksEventReason...). Idle only says that there is no work; the
// two settings and sync boost hold the clock where somebody put it; the rest slow a card down.
inline constexpr uint64_t kThrottleIdle = 0x1;
inline constexpr uint64_t kThrottleClockSetting = 0x2 | 0x100;  // application and display clocks
inline constexpr uint64_t kThrottlePowerCap = 0x4;
inline constexpr uint64_t kThrottleHwSlowdown = 0x8;  // heat, power brake or power draw
inline constexpr uint64_t kThrottleSyncBoost = 0x10;
inline constexpr uint64_t kThrottleSwThermal = 0x20;
inline constexpr uint64_t kThrottleHwThermal = 0x40;
inline constexpr uint64_t kThrottlePowerBrake = 0x80;

// The PCIe link as it is at this moment: without traffic a card lets its generation fall.
struct NvmlLink {
  std::optional<int> generation, width;
};

// What a device is set to, and its health: changes seldom. Of a slice nothing is known, since all
// of it is its parent's. Error counts are since the driver was loaded ("volatile").
struct NvmlState {
  NvmlPowerLimits power_limits;
  std::optional<double> sm_clock_max_hertz;
  std::optional<double> sm_clock_application_hertz, sm_clock_application_default_hertz;
  std::optional<double> memory_clock_application_hertz, memory_clock_application_default_hertz;
  std::optional<bool> persistence;
  std::optional<bool> ecc_enabled;
  std::optional<uint64_t> ecc_corrected, ecc_uncorrected;
  std::optional<uint64_t> remapped_rows;  // from Ampere on
  std::optional<bool> remap_pending;
  std::optional<int> pcie_generation_max, pcie_width_max;
};

// Codes of the statuses below: kNotFound, there is no such library or device; kUnavailable, the
// driver is not loaded; kFailedPrecondition, library and driver are of two versions;
// kDeadlineExceeded, no answer; kUnimplemented, not supported; kInternal, the rest.
class Nvml {
 public:
  virtual ~Nvml() = default;
  virtual absl::StatusOr<NvmlSystem> Describe() = 0;
  virtual absl::StatusOr<NvmlSample> Sample(const std::string& uuid) = 0;
  virtual absl::StatusOr<NvmlState> State(const std::string& uuid) = 0;
  virtual absl::StatusOr<NvmlLink> Link(const std::string& uuid) = 0;
  // Xids (the driver's numbers of errors) of the device since the call before this one; the first
  // call begins to listen and answers with none. Unimplemented where the device tells none.
  virtual absl::StatusOr<std::vector<int64_t>> Xids(const std::string& uuid) = 0;
  // Processes with a context on the device. In a container the list may be empty or in the host's
  // numbers although the memory is in use.
  virtual absl::StatusOr<std::vector<int64_t>> ProcessIds(const std::string& uuid) = 0;
  // True where what it yields was captured and not measured: all its devices are `simulated`.
  virtual bool captured() const = 0;
  // A captured device whose temperature follows a load all the same.
  virtual bool captured_heats(const std::string&) const { return false; }
};

}  // namespace assay

#endif  // ASSAY_AGENT_TELEMETRY_NVML_H_
