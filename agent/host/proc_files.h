// What /proc, /sys and /etc say of a machine. Roots are parameters, so that tests use a folder. A
// file that is missing or odd yields an empty or zero answer, never an error: none is essential.
// Thread rule: pure but for reading files; any thread.
#ifndef ASSAY_AGENT_HOST_PROC_FILES_H_
#define ASSAY_AGENT_HOST_PROC_FILES_H_

#include <cstdint>
#include <optional>
#include <string>

namespace assay {

// At most `most` bytes of a file; nullopt where it cannot be read.
std::optional<std::string> ReadFileText(const std::string& path, size_t most = 1 << 20);

// "model name" of /proc/cpuinfo, else (Arm) its "Hardware" or "CPU implementer" and "CPU part".
std::string CpuModel(const std::string& proc_root);
// Processors that /proc/cpuinfo lists.
int CpuCount(const std::string& proc_root);
// MemTotal, or the least memory limit of this process's cgroup and those above it where that is
// less.
uint64_t MachineMemoryBytes(const std::string& proc_root, const std::string& sys_root);
// Processors' worth of time that this process's cgroup and those above it grant, the least of them;
// nullopt where there is no limit.
std::optional<double> CgroupCpuQuota(const std::string& proc_root, const std::string& sys_root);
// How often, and for how long over all processors, this process's cgroup and those above it were
// kept from running because they had used up what they are granted, since they were made
// (cpu.stat).
struct CpuThrottling {
  uint64_t periods = 0;
  double seconds = 0;
};
std::optional<CpuThrottling> CgroupThrottling(const std::string& proc_root,
                                              const std::string& sys_root);
// List of the processors that this process may use ("0-3,8"), cpusets and affinity taken together.
std::string AllowedProcessors(const std::string& proc_root);
// "value" of "key: value" or "key=value" in `text`, of the first line with that key; empty: none.
std::string ValueOfKey(const std::string& text, const std::string& key, char separator);
std::string MachineId(const std::string& etc_root);
std::string BootId(const std::string& proc_root);
// PRETTY_NAME of /etc/os-release.
std::string OsName(const std::string& etc_root);
// NUMA node of a PCI device ("00000000:3B:00.0", NVML's spelling, or sysfs's), -1 where unknown.
int NumaNode(const std::string& sys_root, const std::string& pci_bus_id);
// True where an NVIDIA kernel module has left its traces.
bool HasNvidiaDriver(const std::string& proc_root);
// Size of the file system at `path`, nullopt where there is none.
std::optional<uint64_t> FileSystemBytes(const std::string& path);

}  // namespace assay

#endif  // ASSAY_AGENT_HOST_PROC_FILES_H_
