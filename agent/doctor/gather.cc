#include "agent/doctor/gather.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "agent/doctor/gather_host.h"
#include "agent/host/proc_files.h"
#include "agent/inventory/bounded_command.h"
#include "agent/inventory/gpu_devices.h"
#include "agent/inventory/stack_manifests.h"
#include "agent/inventory/visible_devices.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostProcessesShown = 64;
constexpr std::chrono::seconds kMpirunLimit{5};

std::string FirstLine(const std::string& text) {
  const std::string scrubbed = ScrubForTerminal(text.substr(0, 4096));
  return scrubbed.substr(0, std::min(scrubbed.find('\n'), Utf8Boundary(scrubbed, 200)));
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue ..." or "... Open Kernel Module
// for x86_64  580.65.06  Release Build": the first word of numbers and dots.
std::string ModuleVersion(const std::string& proc_root) {
  std::string line =
      FirstLine(ReadFileText(proc_root + "/driver/nvidia/version", 4096).value_or(""));
  for (const std::string& word : WordsOf(line)) {
    if (word.find('.') == std::string::npos) continue;
    if (word.find_first_not_of("0123456789.") == std::string::npos) return word;
  }
  return line;
}

int PciGpus(const std::string& sys_root) {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator it(sys_root + "/bus/pci/devices", error), end; !error && it != end;
       it.increment(error)) {
    const std::string folder = it->path().string();
    const std::string vendor = ReadFileText(folder + "/vendor", 16).value_or("");
    const std::string kind = ReadFileText(folder + "/class", 16).value_or("");
    if (vendor.starts_with("0x10de") && kind.starts_with("0x03")) ++count;
  }
  return count;
}

DeviceNode LookAtNode(const std::string& root, const std::string& path) {
  DeviceNode node;
  node.path = path;
  struct stat info{};
  if (stat((root + path).c_str(), &info) != 0) return node;
  node.exists = true;
  node.mode = info.st_mode & 07777;
  node.group = info.st_gid;
  // Not opened: without persistence mode that would wake the card, and a sick driver hangs in it.
  node.usable = access((root + path).c_str(), R_OK | W_OK) == 0;
  return node;
}

std::vector<DeviceNode> DeviceNodes(const std::string& root) {
  std::vector<DeviceNode> nodes = {LookAtNode(root, "/dev/nvidiactl"),
                                   LookAtNode(root, "/dev/nvidia-uvm")};
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(root + "/dev", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() > 6 && name.size() < 12 && name.starts_with("nvidia") &&
        name.find_first_not_of("0123456789", 6) == std::string::npos) {
      names.insert(name);
    }
  }
  for (const std::string& name : names) nodes.push_back(LookAtNode(root, "/dev/" + name));
  return nodes;
}

GpuUse LookAtUse(Nvml& nvml, const std::string& uuid, const std::string& proc_root) {
  GpuUse use;
  if (const auto sample = nvml.Sample(uuid); sample.ok()) {
    use.memory_used_bytes = sample->memory_used_bytes;
  }
  const auto pids = nvml.ProcessIds(uuid);
  if (!pids.ok()) {
    use.processes = pids.status();
    return use;
  }
  std::vector<GpuProcess> processes;
  for (const int64_t pid : *pids) {
    if (processes.size() == kMostProcessesShown) break;
    GpuProcess process{pid, "", false};
    if (!nvml.captured()) {
      process.program =
          FirstLine(ReadFileText(fmt::format("{}/{}/comm", proc_root, pid), 64).value_or(""));
    }
    process.ours = process.program.starts_with("assay-");
    processes.push_back(std::move(process));
  }
  use.processes = std::move(processes);
  return use;
}

Device CpuDevice(const std::string& proc_root) {
  Device cpu;
  cpu.kind = "cpu";
  cpu.uuid = "CPU";
  cpu.raw_name = ScrubUtf8(CpuModel(proc_root));
  if (cpu.raw_name.empty()) cpu.raw_name = "the processor";
  return cpu;
}

// As LocalInventory offers them, without stacks and with what was left out.
void GatherDevices(const GatherOptions& options, Nvml* nvml, Facts& facts) {
  const std::string proc_root = options.root + "/proc", sys_root = options.root + "/sys";
  NvidiaFacts& nvidia = facts.nvidia;
  nvidia.wanted = nvml != nullptr;
  nvidia.module_version = ModuleVersion(proc_root);
  nvidia.pci_gpus = PciGpus(sys_root);
  nvidia.nodes = DeviceNodes(options.root);
  if (nvml == nullptr) {
    facts.devices = facts.all_devices = {CpuDevice(proc_root)};
    return;
  }
  nvidia.captured = nvml->captured();
  nvidia.nvml = nvml->Describe();
  if (!nvidia.nvml.ok() || nvidia.nvml->devices.empty()) {
    // A node whose driver is sick is no node without GPUs.
    const bool sick = !nvidia.nvml.ok() && (!nvidia.module_version.empty() || nvidia.captured);
    if (!sick) facts.devices = facts.all_devices = {CpuDevice(proc_root)};
    return;
  }
  for (const NvmlDevice& gpu : nvidia.nvml->devices) {
    if (!gpu.uuid.empty()) nvidia.use.emplace(gpu.uuid, LookAtUse(*nvml, gpu.uuid, proc_root));
  }
  facts.all_devices = GpuDevices(*nvidia.nvml, nvml->captured(), sys_root, facts.device_warnings);
  const bool all = options.devices == "auto" || options.devices.empty() || nvml->captured();
  VisibleDevices visible =
      FilterVisible(facts.all_devices,
                    nvml->captured() ? std::map<std::string, std::string>{} : options.environment,
                    all ? std::vector<std::string>{} : SplitList(options.devices));
  facts.devices = std::move(visible.devices);
  facts.device_warnings.insert(facts.device_warnings.end(), visible.warnings.begin(),
                               visible.warnings.end());
}

void GatherStacks(const GatherOptions& options, Facts& facts) {
  facts.stacks_dir = options.stacks_dir;
  if (options.measuring) return;
  StackManifests manifests(options.stacks_dir);
  std::vector<std::string> warnings;
  manifests.Refresh(warnings);
  for (const StackProgram& program : manifests.programs()) {
    facts.stacks.push_back(program.stack);
    facts.stack_programs[program.stack.name] = program.program;
  }
  // What is wrong with a stack itself is said of the stack.
  for (const std::string& warning : warnings) {
    const bool of_a_stack =
        std::any_of(facts.stacks.begin(), facts.stacks.end(), [&](const Stack& stack) {
          return warning == fmt::format("stack {}: {}", stack.name, stack.unusable_reason);
        });
    if (!of_a_stack) facts.stack_warnings.push_back(ScrubUtf8(warning));
  }
}

CommandFacts GatherMpirun(const GatherOptions& options) {
  CommandFacts mpirun;
  const auto path = options.environment.find("PATH");
  if (path == options.environment.end()) return mpirun;
  size_t at = 0;
  while (at <= path->second.size() && mpirun.path.empty()) {
    const size_t colon = std::min(path->second.find(':', at), path->second.size());
    const std::string folder = path->second.substr(at, colon - at);
    at = colon + 1;
    const std::string candidate = folder + "/mpirun";
    struct stat info{};
    if (folder.starts_with("/") && stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        access(candidate.c_str(), X_OK) == 0) {
      mpirun.path = candidate;
    }
  }
  if (mpirun.path.empty() || options.measuring) return mpirun;
  const auto answer = RunBounded(mpirun.path, {"--version"}, options.environment, kMpirunLimit);
  if (!answer.ok()) {
    mpirun.error = ScrubUtf8(std::string(answer.status().message()));
  } else if (answer->exit_code != 0) {
    mpirun.error = fmt::format("{} --version ended with {}: {}", mpirun.path,
                               answer->signal ? fmt::format("signal {}", answer->signal)
                                              : fmt::format("exit code {}", answer->exit_code),
                               FirstLine(answer->errors));
  } else {
    mpirun.version = FirstLine(answer->output);
  }
  return mpirun;
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? ScrubUtf8(name) : "node";
}

}  // namespace

Facts GatherFacts(const GatherOptions& options, Nvml* nvml) {
  Facts facts;
  facts.node = options.node.empty() ? HostName() : ScrubUtf8(options.node);
  facts.version = options.version;
  facts.measuring = options.measuring;
  GatherDevices(options, nvml, facts);
  GatherStacks(options, facts);
  facts.mpirun = GatherMpirun(options);
  GatherHost(options, facts);
  return facts;
}

}  // namespace assay
