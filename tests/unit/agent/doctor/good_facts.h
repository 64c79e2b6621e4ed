// Facts of a node with two good GPUs and nothing to complain of; a test spoils one of them.
#ifndef ASSAY_TESTS_UNIT_AGENT_DOCTOR_GOOD_FACTS_H_
#define ASSAY_TESTS_UNIT_AGENT_DOCTOR_GOOD_FACTS_H_

#include <string>

#include "agent/doctor/checks.h"
#include "agent/doctor/facts.h"

namespace assay {

inline NvmlDevice GoodGpu(int index) {
  NvmlDevice gpu;
  gpu.uuid = "GPU-" + std::to_string(index);
  gpu.name = "NVIDIA H200";
  gpu.index = index;
  gpu.memory_total_bytes = uint64_t{143771} << 20;
  gpu.cc_major = 9;
  gpu.cc_minor = 0;
  gpu.ecc_enabled = true;
  gpu.ecc_uncorrected_volatile = 0;
  gpu.remap_pending = false;
  gpu.remap_failed = false;
  gpu.persistence = true;
  gpu.pcie_width = gpu.pcie_width_max = 16;
  gpu.power_limits = {700, 700};
  return gpu;
}

inline Device OfferedGpu(const NvmlDevice& gpu) {
  Device device;
  device.uuid = gpu.uuid;
  device.raw_name = gpu.name;
  device.memory_total_bytes = gpu.memory_total_bytes;
  device.cc_major = gpu.cc_major.value_or(0);
  device.cc_minor = gpu.cc_minor.value_or(0);
  device.physical_index = gpu.index;
  device.driver_version = "580.65.06";
  return device;
}

inline Stack GoodStack() {
  Stack stack;
  stack.name = "libtorch-2.11.0";
  stack.runner = "assay-train";
  stack.versions = {
      {"nccl", "2.28.9"}, {"libtorch", "2.11.0"}, {"cuda", "13.0"}, {"cudnn", "9.19"}};
  stack.models = {"resnet50"};
  stack.modes = {"train"};
  stack.precisions = {"fp32", "amp-bf16"};
  stack.lanes = {"eager"};
  stack.layouts = {"channels-last"};
  stack.arch_list = {"sm_80", "sm_90"};
  stack.device_kinds = {"cpu", "gpu"};
  return stack;
}

inline Facts GoodFacts() {
  Facts facts;
  facts.node = "n1";
  facts.version = "0.1.0";
  NvidiaFacts& nvidia = facts.nvidia;
  nvidia.module_version = "580.65.06";
  nvidia.pci_gpus = 2;
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1"}) {
    nvidia.nodes.push_back({path, true, true, 0666, 0});
  }
  NvmlSystem system;
  system.driver_version = "580.65.06";
  for (const int index : {0, 1}) {
    system.devices.push_back(GoodGpu(index));
    nvidia.use["GPU-" + std::to_string(index)] = {std::vector<GpuProcess>{}, uint64_t{4} << 20};
    facts.devices.push_back(OfferedGpu(system.devices.back()));
  }
  nvidia.nvml = system;
  facts.all_devices = facts.devices;
  facts.stacks_dir = "/opt/assay/stacks";
  facts.stacks = {GoodStack()};
  facts.stack_programs["libtorch-2.11.0"] = "/opt/assay/bin/assay-train";
  facts.mpirun = {"/usr/bin/mpirun", "mpirun (Open MPI) 4.1.4", ""};
  facts.interfaces = {{"lo", true, true, {"127.0.0.1"}, 0, 65536, ""},
                      {"eth0", false, true, {"10.0.0.7"}, 100000, 9000, ""}};
  facts.clock = {"", true, 0.004};
  facts.state = {"/var/lib/assay",    true,   "", "/var/lib/assay", "ext4",
                 uint64_t{100} << 30, 1000000};
  facts.shm_bytes = facts.shm_free_bytes = uint64_t{8} << 30;
  facts.locks = {"/tmp/assay-gpu-locks", ""};
  facts.limits = {uint64_t{65536}, uint64_t{65536}, std::nullopt, true};
  facts.cpu.listed = facts.cpu.allowed_count = 64;
  facts.cpu.allowed = "0-63";
  facts.cpu.governors = {{"performance", 64}};
  return facts;
}

// The only check of that name; a check of no name where there is none or several.
inline DoctorCheck CheckNamed(const Facts& facts, const std::string& name) {
  DoctorCheck found;
  for (const DoctorCheck& check : Diagnose(facts).checks) {
    if (check.name != name) continue;
    if (!found.name.empty()) return {};
    found = check;
  }
  return found;
}

}  // namespace assay

#endif  // ASSAY_TESTS_UNIT_AGENT_DOCTOR_GOOD_FACTS_H_
