// From what NVML says to the devices of an inventory. Pure but for reading NUMA nodes from sysfs.
#ifndef ASSAY_AGENT_INVENTORY_GPU_DEVICES_H_
#define ASSAY_AGENT_INVENTORY_GPU_DEVICES_H_

#include <string>
#include <vector>

#include "agent/telemetry/nvml.h"
#include "common/fleet/inventory.h"

namespace assay {

// In NVML's order, slices after their parent. A parent with MIG on is shown, never offered; each
// slice is a device of its own with its own memory, and with its profile in the name. A device that
// answered in part carries its faults as warnings; one without a UUID becomes a warning of the
// node. `simulated`: the NVML was captured.
std::vector<Device> GpuDevices(const NvmlSystem& system, bool simulated,
                               const std::string& sys_root, std::vector<std::string>& warnings);

}  // namespace assay

#endif  // ASSAY_AGENT_INVENTORY_GPU_DEVICES_H_
