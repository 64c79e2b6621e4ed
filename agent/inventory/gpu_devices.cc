#include "agent/inventory/gpu_devices.h"

#include <fmt/format.h>

#include <set>

#include "agent/host/proc_files.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

std::vector<std::string> HealthWarnings(const NvmlDevice& gpu) {
  std::vector<std::string> warnings;
  for (const std::string& fault : gpu.faults) warnings.push_back(ScrubUtf8(fault));
  if (gpu.remap_pending.value_or(false)) {
    warnings.push_back("a row remap (or page retirement) is pending: reset the GPU");
  }
  if (gpu.remap_failed.value_or(false)) {
    warnings.push_back("a row remap has failed: the GPU is due for replacement");
  }
  if (gpu.ecc_uncorrected_volatile.value_or(0) > 0) {
    warnings.push_back(fmt::format("{} uncorrected ECC errors since the driver was loaded",
                                   *gpu.ecc_uncorrected_volatile));
  }
  if (gpu.pcie_width && gpu.pcie_width_max && *gpu.pcie_width > 0 &&
      *gpu.pcie_width < *gpu.pcie_width_max) {
    warnings.push_back(
        fmt::format("PCIe runs at x{} of x{}", *gpu.pcie_width, *gpu.pcie_width_max));
  }
  const auto& limits = gpu.power_limits;
  if (limits.enforced_watts && limits.default_watts && *limits.default_watts > 0 &&
      *limits.enforced_watts < 0.995 * *limits.default_watts) {
    warnings.push_back(fmt::format("power limit {:.0f} W of {:.0f} W: power limited {:.0f} %",
                                   *limits.enforced_watts, *limits.default_watts,
                                   100 * *limits.enforced_watts / *limits.default_watts));
  }
  return warnings;
}

Device WholeGpu(const NvmlDevice& gpu, const std::string& sys_root) {
  Device device;
  device.uuid = ScrubUtf8(gpu.uuid);
  device.raw_name = ScrubUtf8(gpu.name);
  device.memory_total_bytes = gpu.memory_total_bytes;
  device.cc_major = gpu.cc_major.value_or(0);
  device.cc_minor = gpu.cc_minor.value_or(0);
  device.sm_count = gpu.sm_count.value_or(0);
  device.physical_index = gpu.index;
  device.pci_bus_id = ScrubUtf8(gpu.pci_bus_id);
  device.numa_node = NumaNode(sys_root, gpu.pci_bus_id);
  device.warnings = HealthWarnings(gpu);
  return device;
}

Device SliceOf(const Device& parent, const NvmlMigSlice& slice) {
  Device device = parent;
  device.kind = "mig";
  device.usable = true;
  device.uuid = ScrubUtf8(slice.uuid);
  device.raw_name = ScrubUtf8(slice.name);
  if (device.raw_name.find("MIG ") == std::string::npos) {
    device.raw_name += " MIG " + ScrubUtf8(slice.profile);
  }
  device.memory_total_bytes = slice.memory_total_bytes;
  device.sm_count = slice.sm_count.value_or(0);
  return device;
}

}  // namespace

std::vector<Device> GpuDevices(const NvmlSystem& system, bool simulated,
                               const std::string& sys_root, std::vector<std::string>& warnings) {
  std::vector<Device> devices;
  std::set<std::string> seen;
  const auto add = [&](Device device) {
    device.simulated = simulated;
    device.driver_version = ScrubUtf8(system.driver_version);
    if (!seen.insert(device.uuid).second) {
      warnings.push_back(
          fmt::format("the driver names GPU {} twice; it is listed once", device.uuid));
      return;
    }
    devices.push_back(std::move(device));
  };
  for (const NvmlDevice& gpu : system.devices) {
    if (gpu.uuid.empty()) {
      for (const std::string& fault : gpu.faults) warnings.push_back(ScrubUtf8(fault));
      if (gpu.faults.empty()) warnings.push_back(fmt::format("GPU {} has no UUID", gpu.index));
      continue;
    }
    Device whole = WholeGpu(gpu, sys_root);
    if (gpu.mig_enabled) {
      whole.usable = false;
      whole.warnings.push_back(gpu.slices.empty()
                                   ? "MIG is on and has no slice: make slices or turn it off"
                                   : "MIG is on: its slices are offered, and share its power");
    }
    add(whole);
    whole.warnings = HealthWarnings(gpu);
    for (const NvmlMigSlice& slice : gpu.slices) add(SliceOf(whole, slice));
  }
  return devices;
}

}  // namespace assay
