// What a node has, as plain types: the agent fills them, the coordinator and CLI read them.
// proto/assay/v1/common.proto says what each field means; common/wire converts.
#ifndef ASSAY_COMMON_FLEET_INVENTORY_H_
#define ASSAY_COMMON_FLEET_INVENTORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace assay {

struct Device {
  std::string uuid;
  std::string kind = "gpu";  // gpu, mig, cpu
  std::string raw_name;      // scrubbed to UTF-8
  uint64_t memory_total_bytes = 0;
  int cc_major = 0;
  int cc_minor = 0;
  int sm_count = 0;
  int physical_index = 0;
  std::string pci_bus_id;
  int numa_node = -1;
  std::vector<std::string> warnings;
  bool simulated = false;
  bool usable = true;
  std::string driver_version;
};

struct Stack {
  std::string name;
  std::string runner;
  std::map<std::string, std::string> versions;
  std::vector<std::string> models, modes, precisions, lanes, layouts, arch_list, device_kinds;
  int64_t max_world_size = 1;
  bool simulated = false;
  std::string digest;
  std::string unusable_reason;
};

struct NodeInventory {
  std::string node;
  std::string machine_id;
  std::string boot_id;
  std::string agent_version;
  std::string cpu_model;
  int cpu_count = 0;
  uint64_t memory_bytes = 0;
  std::string os;
  std::vector<Device> devices;
  std::vector<Stack> stacks;
  std::vector<std::string> warnings;
};

}  // namespace assay

#endif  // ASSAY_COMMON_FLEET_INVENTORY_H_
