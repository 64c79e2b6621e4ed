// Driver, device nodes and what NVML says of each GPU.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "agent/doctor/checks.h"
#include "agent/doctor/findings.h"
#include "agent/telemetry/exclusivity.h"
#include "common/status/status.h"
#include "common/text/number_format.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

constexpr char kAskTheKernel[] = "sudo dmesg | grep -i -e NVRM -e Xid | tail";

using Gpus = std::vector<NvmlDevice>;

// What a failed Describe means on this machine.
DoctorCheck DriverFailure(const NvidiaFacts& nvidia) {
  const std::string said = ScrubUtf8(Message(nvidia.nvml.status()));
  const bool loaded = !nvidia.module_version.empty();
  switch (nvidia.nvml.status().code()) {
    case absl::StatusCode::kFailedPrecondition:
      return Bad("driver",
                 fmt::format("the NVIDIA library and the loaded kernel module{} are of two "
                             "versions: {}",
                             loaded ? " " + nvidia.module_version : "", said),
                 "sudo reboot");
    case absl::StatusCode::kDeadlineExceeded:
      return Bad("driver", said, kAskTheKernel);
    case absl::StatusCode::kNotFound:
      if (loaded) {
        return Bad("driver",
                   fmt::format("kernel module {} is loaded, and the driver's library is missing "
                               "(in a container: start it with --gpus all): {}",
                               nvidia.module_version, said),
                   "sudo apt-get install libnvidia-ml1");
      }
      break;
    case absl::StatusCode::kUnavailable:
      break;
    default:
      return Bad("driver", said, kAskTheKernel);
  }
  if (loaded) return Bad("driver", said, kAskTheKernel);
  if (nvidia.pci_gpus > 0) {
    return Bad("driver",
               fmt::format("{} on the PCI bus, and no driver is loaded",
                           Counted(static_cast<uint64_t>(nvidia.pci_gpus), "NVIDIA GPU")),
               "sudo apt-get install nvidia-driver && sudo reboot");
  }
  return Good("driver", "no NVIDIA GPU and no driver; the processor is the device");
}

DoctorCheck CheckDriver(const NvidiaFacts& nvidia) {
  if (!nvidia.nvml.ok()) return DriverFailure(nvidia);
  const std::string version = ScrubUtf8(nvidia.nvml->driver_version);
  if (nvidia.captured) {
    return Good("driver",
                fmt::format("{}, captured: of another machine, for simulated cells", version));
  }
  if (!nvidia.module_version.empty() && !version.empty() && nvidia.module_version != version) {
    return Bad("driver",
               fmt::format("NVML speaks for driver {}, and kernel module {} is loaded", version,
                           nvidia.module_version),
               "sudo reboot");
  }
  // A container may not show the module's version.
  if (nvidia.module_version.empty()) return Good("driver", version);
  return Good("driver", fmt::format("{}, NVML and kernel module agree", version));
}

std::string NodeRemedy(const DeviceNode& node) {
  const bool by_group = (node.mode & 060) == 060 && node.group != 0;
  return by_group ? fmt::format("sudo usermod -aG \"$(stat -c %G {})\" \"$USER\"", node.path)
                  : fmt::format("sudo chmod 666 {}", node.path);
}

DoctorCheck CheckNodes(const NvidiaFacts& nvidia) {
  const std::string name = "device-nodes";
  std::vector<std::string> missing, denied;
  const DeviceNode* first_denied = nullptr;
  size_t cards = 0;
  for (const DeviceNode& node : nvidia.nodes) {
    cards += node.path != "/dev/nvidiactl" && node.path != "/dev/nvidia-uvm" ? 1 : 0;
    if (!node.exists) missing.push_back(node.path);
    if (!node.exists || node.usable) continue;
    denied.push_back(node.path);
    if (first_denied == nullptr) first_denied = &node;
  }
  if (cards == 0) missing.emplace_back("/dev/nvidia0");
  if (!missing.empty()) {
    return Bad(name,
               fmt::format("{} {} missing: CUDA cannot start", Listed(missing),
                           missing.size() == 1 ? "is" : "are"),
               "sudo nvidia-modprobe -c 0 -u");
  }
  if (first_denied != nullptr) {
    return Bad(name, fmt::format("this user may not open {}", Listed(denied)),
               NodeRemedy(*first_denied));
  }
  return Good(name, fmt::format("this user may open all {}", nvidia.nodes.size()));
}

DoctorCheck CheckSeen(const Facts& facts, const Gpus& gpus) {
  const NvidiaFacts& nvidia = facts.nvidia;
  std::vector<std::string> faults;
  for (const NvmlDevice& gpu : gpus) {
    for (const std::string& fault : gpu.faults) faults.push_back(ScrubUtf8(fault));
  }
  if (!faults.empty()) {
    return Bad(
        "gpus",
        fmt::format("of {}, not all answer: {}", Counted(gpus.size(), "GPU"), Listed(faults)),
        kAskTheKernel);
  }
  if (gpus.empty()) {
    if (nvidia.pci_gpus == 0) return Good("gpus", "the driver is loaded and shows no GPU");
    return Bad("gpus",
               fmt::format("the PCI bus has {}, and the driver shows none",
                           Counted(static_cast<uint64_t>(nvidia.pci_gpus), "NVIDIA GPU")),
               kAskTheKernel);
  }
  std::vector<std::string> names;
  for (const NvmlDevice& gpu : gpus) {
    std::string name = ScrubUtf8(gpu.name);
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  const std::string seen = fmt::format("{}: {}", Counted(gpus.size(), "GPU"), Listed(names));
  if (!nvidia.captured && nvidia.pci_gpus > static_cast<int>(gpus.size())) {
    return Warn("gpus",
                fmt::format("{}; the PCI bus has {} (as it should be in a container that was "
                            "given fewer)",
                            seen, nvidia.pci_gpus),
                kAskTheKernel);
  }
  return Good("gpus", seen);
}

DoctorCheck CheckOffered(const Facts& facts) {
  const auto count = [](const std::vector<Device>& devices) {
    return static_cast<size_t>(std::count_if(devices.begin(), devices.end(),
                                             [](const Device& device) { return device.usable; }));
  };
  const size_t offered = count(facts.devices), all = count(facts.all_devices);
  std::vector<std::string> why = facts.device_warnings;
  for (std::string& sentence : why) sentence = ScrubUtf8(sentence);
  const std::string text = fmt::format("{} of {} offered{}{}", offered, Counted(all, "device"),
                                       why.empty() ? "" : ": ", fmt::join(why, "; "));
  if (offered == 0 && all > 0) {
    return Bad("offered", text,
               "env | grep -e CUDA_VISIBLE_DEVICES -e NVIDIA_VISIBLE_DEVICES -e ASSAY_DEVICES");
  }
  return why.empty() ? Good("offered", text) : Warn("offered", text);
}

// GPUs for which `is` holds, by index.
std::vector<int> Which(const Gpus& gpus, const std::function<bool(const NvmlDevice&)>& is) {
  std::vector<int> indexes;
  for (const NvmlDevice& gpu : gpus) {
    if (is(gpu)) indexes.push_back(gpu.index);
  }
  return indexes;
}

DoctorCheck CheckPersistence(const Gpus& gpus) {
  const auto off = Which(gpus, [](const NvmlDevice& gpu) { return gpu.persistence == false; });
  if (!off.empty()) {
    return Warn("persistence",
                fmt::format("persistence mode is off on {}: each start of a program initialises "
                            "the card anew, and settings are lost",
                            GpusText(off, gpus.size())),
                "sudo nvidia-smi -pm 1");
  }
  const auto on = Which(gpus, [](const NvmlDevice& gpu) { return gpu.persistence == true; });
  if (on.empty()) return NotKnown("persistence", "the driver does not say");
  return Good("persistence", fmt::format("on for {}", GpusText(on, gpus.size())));
}

DoctorCheck CheckPower(const Gpus& gpus) {
  std::vector<std::string> below, commands;
  double highest = 0;
  for (const NvmlDevice& gpu : gpus) {
    const auto& [enforced, usual] = gpu.power_limits;
    if (!enforced || !usual || *usual <= 0) continue;
    highest = std::max(highest, *enforced);
    if (*enforced >= 0.995 * *usual) continue;
    below.push_back(fmt::format("GPU {} {:.0f} W of {:.0f} W", gpu.index, *enforced, *usual));
    commands.push_back(fmt::format("sudo nvidia-smi -i {} -pl {:.0f}", gpu.index, *usual));
  }
  if (!below.empty()) {
    return Warn("power-limit",
                fmt::format("below the card's default: {}; results get the mark power_limited",
                            Listed(below)),
                fmt::format("{}", fmt::join(commands, " && ")));
  }
  if (highest <= 0) return NotKnown("power-limit", "the driver does not say");
  return Good("power-limit", fmt::format("at the default, {:.0f} W", highest));
}

DoctorCheck CheckMemoryErrors(const Gpus& gpus) {
  const std::string name = "memory-errors";
  const auto failed = Which(gpus, [](const NvmlDevice& g) { return g.remap_failed == true; });
  const auto pending = Which(gpus, [](const NvmlDevice& g) { return g.remap_pending == true; });
  if (!failed.empty()) {
    return Bad(name,
               fmt::format("a row remap has failed on {}: the card is due for replacement",
                           GpusText(failed, gpus.size())),
               fmt::format("nvidia-smi -i {} -q -d ROW_REMAPPER,ECC", failed[0]));
  }
  if (!pending.empty()) {
    return Warn(name,
                fmt::format("a row remap or page retirement waits for a reset of {}",
                            GpusText(pending, gpus.size())),
                fmt::format("sudo nvidia-smi -i {} -r", pending[0]));
  }
  std::vector<std::string> errors;
  for (const NvmlDevice& gpu : gpus) {
    if (gpu.ecc_uncorrected_volatile.value_or(0) == 0) continue;
    errors.push_back(fmt::format("GPU {} {}", gpu.index, *gpu.ecc_uncorrected_volatile));
  }
  if (!errors.empty()) {
    return Warn(
        name, fmt::format("uncorrected ECC errors since the driver was loaded: {}", Listed(errors)),
        "nvidia-smi -q -d ECC");
  }
  const auto on = Which(gpus, [](const NvmlDevice& g) { return g.ecc_enabled == true; });
  if (on.empty()) return Good(name, "no remap waits; ECC is off or the card has none");
  return Good(name, fmt::format("ECC on for {}, no uncorrected error", GpusText(on, gpus.size())));
}

DoctorCheck CheckPcie(const Gpus& gpus) {
  std::vector<std::string> narrow;
  bool known = false;
  for (const NvmlDevice& gpu : gpus) {
    if (!gpu.pcie_width || !gpu.pcie_width_max || *gpu.pcie_width <= 0) continue;
    known = true;
    if (*gpu.pcie_width >= *gpu.pcie_width_max) continue;
    narrow.push_back(
        fmt::format("GPU {} x{} of x{}", gpu.index, *gpu.pcie_width, *gpu.pcie_width_max));
  }
  if (!narrow.empty()) {
    return Warn("pcie",
                fmt::format("fewer PCIe lanes than the card has: {} (slot, riser or firmware)",
                            Listed(narrow)),
                "nvidia-smi -q | grep -A 12 'GPU Link Info'");
  }
  return known ? Good("pcie", "every card has all its lanes")
               : NotKnown("pcie", "the driver does not say");
}

DoctorCheck CheckMig(const Gpus& gpus) {
  const auto on = Which(gpus, [](const NvmlDevice& gpu) { return gpu.mig_enabled; });
  const auto empty =
      Which(gpus, [](const NvmlDevice& gpu) { return gpu.mig_enabled && gpu.slices.empty(); });
  if (!empty.empty()) {
    return Bad("mig",
               fmt::format("MIG is on and has no slice on {}, which is of no use so",
                           GpusText(empty, gpus.size())),
               fmt::format("sudo nvidia-smi -i {} -mig 0", empty[0]));
  }
  if (on.empty()) return Good("mig", "off");
  size_t slices = 0;
  for (const NvmlDevice& gpu : gpus) slices += gpu.slices.size();
  return Good("mig", fmt::format("on for {}, with {}", GpusText(on, gpus.size()),
                                 Counted(slices, "slice")));
}

DoctorCheck CheckProcesses(const Facts& facts, const Gpus& gpus) {
  std::vector<std::string> others, ours, hidden;
  bool listed = false;
  for (const NvmlDevice& gpu : gpus) {
    const auto found = facts.nvidia.use.find(gpu.uuid);
    if (found == facts.nvidia.use.end()) continue;
    const GpuUse& use = found->second;
    listed = listed || use.processes.ok();
    for (const GpuProcess& process :
         use.processes.ok() ? *use.processes : std::vector<GpuProcess>{}) {
      const std::string text = fmt::format(
          "{} (pid {}) on GPU {}", process.program.empty() ? "a hidden process" : process.program,
          process.pid, gpu.index);
      (process.ours ? ours : others).push_back(text);
    }
    const bool idle = !use.processes.ok() || use.processes->empty();
    if (idle && use.memory_used_bytes.value_or(0) > kIdleBaselineBytes) {
      hidden.push_back(fmt::format(
          "{} on GPU {}", HumanBytes(static_cast<int64_t>(*use.memory_used_bytes)), gpu.index));
    }
  }
  if (!others.empty()) {
    if (others.size() > 8) others.resize(8);
    return Warn("gpu-processes", "in use by " + Listed(others), "nvidia-smi");
  }
  if (!hidden.empty()) {
    return Warn("gpu-processes",
                fmt::format("memory in use by what is not shown here (another container or "
                            "user): {}",
                            Listed(hidden)),
                "sudo fuser -v /dev/nvidia*");
  }
  if (!ours.empty()) return Good("gpu-processes", "a cell of Assay runs: " + Listed(ours));
  return listed ? Good("gpu-processes", "none")
                : NotKnown("gpu-processes", "the driver does not list them");
}

}  // namespace

void CheckNvidia(const Facts& facts, std::vector<DoctorCheck>& checks) {
  const NvidiaFacts& nvidia = facts.nvidia;
  if (!nvidia.wanted) {
    checks.push_back(Good("driver", "not looked at: --devices cpu offers the processor alone"));
    return;
  }
  checks.push_back(CheckDriver(nvidia));
  if (!nvidia.captured && !nvidia.module_version.empty()) checks.push_back(CheckNodes(nvidia));
  if (!nvidia.nvml.ok()) return;
  const Gpus& gpus = nvidia.nvml->devices;
  checks.push_back(CheckSeen(facts, gpus));
  if (gpus.empty()) return;
  checks.push_back(CheckOffered(facts));
  checks.push_back(CheckPersistence(gpus));
  checks.push_back(CheckPower(gpus));
  checks.push_back(CheckMemoryErrors(gpus));
  checks.push_back(CheckPcie(gpus));
  checks.push_back(CheckMig(gpus));
  checks.push_back(CheckProcesses(facts, gpus));
}

}  // namespace assay
