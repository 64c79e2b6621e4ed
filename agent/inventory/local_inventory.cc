#include "agent/inventory/local_inventory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "agent/host/proc_files.h"
#include "agent/inventory/gpu_devices.h"
#include "agent/inventory/visible_devices.h"
#include "common/ids/ids.h"
#include "common/status/status.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

// NCCL's shared-memory transport needs tens of MiB a rank pair; containers default to 64 MiB.
constexpr uint64_t kSmallShmBytes = 1'000'000'000;

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "node";
  return ScrubUtf8(name);
}

Device Processor(const NodeInventory& inventory) {
  Device cpu;
  // Not the machine id itself: systemd asks that it not be published.
  cpu.uuid = "CPU-" + Sha256Hex("assay cpu " + inventory.machine_id).substr(0, 32);
  cpu.kind = "cpu";
  cpu.raw_name = inventory.cpu_model.empty() ? "CPU" : inventory.cpu_model;
  cpu.memory_total_bytes = inventory.memory_bytes;
  return cpu;
}

}  // namespace

std::map<std::string, std::string> ProcessEnvironment() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos && equals > 0) {
      environment[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return environment;
}

LocalInventory::LocalInventory(InventoryOptions options, Nvml* nvml)
    : options_(std::move(options)), nvml_(nvml), manifests_(options_.stacks_dir) {}

LocalInventory::~LocalInventory() = default;

NodeInventory LocalInventory::Collect() {
  NodeInventory inventory;
  inventory.node = options_.node.empty() ? HostName() : options_.node;
  inventory.agent_version = options_.agent_version;
  inventory.machine_id = ScrubUtf8(MachineId(options_.etc_root));
  inventory.boot_id = ScrubUtf8(BootId(options_.proc_root));
  inventory.cpu_model = ScrubUtf8(CpuModel(options_.proc_root));
  inventory.cpu_count = CpuCount(options_.proc_root);
  inventory.memory_bytes = MachineMemoryBytes(options_.proc_root, options_.sys_root);
  inventory.os = ScrubUtf8(OsName(options_.etc_root));
  CollectDevices(inventory);
  const auto gpus = std::count_if(inventory.devices.begin(), inventory.devices.end(),
                                  [](const Device& d) { return d.kind != "cpu" && !d.simulated; });
  const auto shm = FileSystemBytes(options_.shm_path);
  if (gpus > 1 && shm && *shm < kSmallShmBytes) {
    inventory.warnings.push_back(fmt::format(
        "{} has {:.0f} MB and this node several GPUs: NCCL may fail with 'No space left on "
        "device'; enlarge it to 1 GB or more (docker run --shm-size)",
        options_.shm_path, static_cast<double>(*shm) / 1e6));
  }
  manifests_.Refresh(inventory.warnings);
  for (const StackProgram& program : manifests_.programs()) {
    inventory.stacks.push_back(program.stack);
  }
  return inventory;
}

void LocalInventory::CollectDevices(NodeInventory& inventory) const {
  if (options_.devices == "cpu" || nvml_ == nullptr) {
    inventory.devices.push_back(Processor(inventory));
    return;
  }
  const auto system = nvml_->Describe();
  if (!system.ok()) {
    const absl::StatusCode code = system.status().code();
    const bool driver = HasNvidiaDriver(options_.proc_root);
    // No library, or one without a driver: a node without GPUs. Anything else is a GPU node that is
    // sick; measuring its processor in the GPUs' place would hide that.
    const bool no_gpus =
        !driver && (code == absl::StatusCode::kNotFound || code == absl::StatusCode::kUnavailable);
    if (!no_gpus || code == absl::StatusCode::kUnavailable) {
      inventory.warnings.push_back(fmt::format("{}{}",
                                               no_gpus ? "" : "degraded, GPUs cannot be used: ",
                                               ScrubForTerminal(Message(system.status()))));
    }
    if (no_gpus) inventory.devices.push_back(Processor(inventory));
    return;
  }
  std::vector<Device> devices =
      GpuDevices(*system, nvml_->captured(), options_.sys_root, inventory.warnings);
  if (system->devices.empty()) {
    if (HasNvidiaDriver(options_.proc_root)) {
      inventory.warnings.push_back("the NVIDIA driver is loaded and shows no GPU");
    }
    inventory.devices.push_back(Processor(inventory));
    return;
  }
  const std::vector<std::string> allowed = options_.devices == "auto" || options_.devices.empty()
                                               ? std::vector<std::string>{}
                                               : SplitList(options_.devices);
  // The environment speaks of this machine's GPUs, not of captured ones.
  VisibleDevices visible = FilterVisible(
      devices, nvml_->captured() ? std::map<std::string, std::string>{} : options_.environment,
      allowed);
  inventory.devices = std::move(visible.devices);
  inventory.warnings.insert(inventory.warnings.end(), visible.warnings.begin(),
                            visible.warnings.end());
}

absl::StatusOr<StackProgram> LocalInventory::Find(const std::string& name) const {
  return manifests_.Find(name);
}

}  // namespace assay
