// Facts: what a node shows of itself, gathered by gather.h and judged by checks.h. Plain values:
// a test writes the ones it wants to see judged.
#ifndef ASSAY_AGENT_DOCTOR_FACTS_H_
#define ASSAY_AGENT_DOCTOR_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/telemetry/nvml.h"
#include "common/fleet/inventory.h"

namespace assay {

// A file of /dev that the driver's clients open for reading and writing.
struct DeviceNode {
  std::string path;
  bool exists = false;
  bool usable = false;  // by this user
  uint32_t mode = 0;
  uint32_t group = 0;
};

struct GpuProcess {
  int64_t pid = 0;
  std::string program;  // name of its program; empty where this /proc does not show it
  bool ours = false;    // a program of Assay
};

struct GpuUse {
  absl::StatusOr<std::vector<GpuProcess>> processes = absl::UnknownError("not asked");
  std::optional<uint64_t> memory_used_bytes;
};

struct NvidiaFacts {
  bool wanted = true;          // not with --devices cpu
  bool captured = false;       // a captured NVML: nothing of it is this machine's
  std::string module_version;  // of the loaded kernel module; empty: none is loaded
  int pci_gpus = 0;            // NVIDIA display controllers on the PCI bus
  std::vector<DeviceNode> nodes;
  absl::StatusOr<NvmlSystem> nvml = absl::UnknownError("not asked");
  std::map<std::string, GpuUse> use;  // by UUID of whole GPUs
};

struct CommandFacts {
  std::string path;     // empty: not on PATH
  std::string version;  // first line that it printed
  std::string error;    // why there is no version
};

struct InterfaceFacts {
  std::string name;
  bool loopback = false;
  bool carrier = false;                // operstate is up, or not known as for a loopback
  std::vector<std::string> addresses;  // numeric, without link-local ones
  int64_t speed_megabits = 0;          // 0: not known
  int64_t mtu = 0;
  std::string bind_error;  // of a TCP port on one of the addresses; empty: could be bound
  bool bridge = false;     // of the kernel's, as container engines make them
};

struct FolderFacts {
  std::string path;
  bool exists = false;
  std::string error;      // why it cannot be used; empty: a file could be written
  std::string nearest;    // itself, or the nearest folder above it that is there
  std::string file_type;  // of its file system, as mountinfo calls it: "ext4"
  std::optional<uint64_t> free_bytes;
  std::optional<uint64_t> free_files;  // not on file systems without such a count
};

struct ClockFacts {
  std::string error;  // the kernel did not say
  bool synchronised = false;
  double most_error_seconds = 0;
};

struct CpuFacts {
  int listed = 0;                           // processors of /proc/cpuinfo
  std::string allowed;                      // list of processors of this process: "0-3,8"
  int allowed_count = 0;                    // 0: not known
  std::optional<double> quota;              // processors that the cgroup grants
  std::optional<uint64_t> throttled_count;  // periods in which the cgroup ran out
  std::map<std::string, int> governors;     // how many processors have each
};

struct LimitFacts {
  std::optional<uint64_t> open_files;  // soft; nullopt: unlimited
  std::optional<uint64_t> open_files_hard;
  std::optional<uint64_t> locked_bytes;
  bool infiniband = false;  // an RDMA device is there, which needs locked memory
};

struct LockFolderFacts {
  std::string path;
  std::string error;  // why no lock can be taken; empty: it can
};

struct Facts {
  std::string node;
  std::string version;
  bool measuring = false;  // a cell runs here: no program was started beside it
  NvidiaFacts nvidia;
  std::vector<Device> devices;               // that are offered
  std::vector<Device> all_devices;           // that were seen
  std::vector<std::string> device_warnings;  // of what is offered and what is not
  std::string stacks_dir;
  std::vector<Stack> stacks;                          // empty while measuring
  std::map<std::string, std::string> stack_programs;  // by the stack's name
  std::vector<std::string> stack_warnings;            // manifests that were left out
  CommandFacts mpirun;
  std::vector<InterfaceFacts> interfaces;
  std::string interfaces_error;
  ClockFacts clock;
  FolderFacts state;
  std::optional<uint64_t> shm_bytes, shm_free_bytes;
  std::string shm_path = "/dev/shm";
  LockFolderFacts locks;
  LimitFacts limits;
  CpuFacts cpu;
};

}  // namespace assay

#endif  // ASSAY_AGENT_DOCTOR_FACTS_H_
