// LocalInventory: devices and stacks of this machine.
//
// Thread rule: the agent's loop thread. Collect may take seconds (driver, --stack-info); Find does
// not block. Owner: main. Nothing that the driver, a manifest or a program says can throw.
#ifndef ASSAY_AGENT_INVENTORY_LOCAL_INVENTORY_H_
#define ASSAY_AGENT_INVENTORY_LOCAL_INVENTORY_H_

#include <map>
#include <memory>
#include <string>

#include "agent/cell/ports.h"
#include "agent/inventory/stack_manifests.h"
#include "agent/telemetry/nvml.h"

namespace assay {

struct InventoryOptions {
  std::string node;  // empty: the host's name
  std::string agent_version;
  // auto (NVML's GPUs, else the processor), cpu, or a comma-separated list of UUIDs (GPU-...,
  // MIG-...; a unique beginning is enough) that alone are offered. A captured NVML is given as
  // `nvml`.
  std::string devices = "auto";
  std::string stacks_dir;  // of manifests
  // CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER are read from here.
  std::map<std::string, std::string> environment;
  // Folders in whose place tests put fixtures.
  std::string proc_root = "/proc";
  std::string sys_root = "/sys";
  std::string etc_root = "/etc";
  std::string shm_path = "/dev/shm";
};

// The process's environment as such a map.
std::map<std::string, std::string> ProcessEnvironment();

class LocalInventory final : public Inventory, public StackCatalog {
 public:
  // `nvml` may be null (as with --devices cpu) and outlives this object.
  LocalInventory(InventoryOptions options, Nvml* nvml);
  ~LocalInventory() override;

  NodeInventory Collect() override;
  // Of the stacks that the last Collect saw.
  absl::StatusOr<StackProgram> Find(const std::string& name) const override;

 private:
  void CollectDevices(NodeInventory& inventory) const;

  const InventoryOptions options_;
  Nvml* const nvml_;
  StackManifests manifests_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_INVENTORY_LOCAL_INVENTORY_H_
