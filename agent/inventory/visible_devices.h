// Which of a node's GPUs may be offered: what the driver sees, less what the environment or the
// operator took away. Pure.
//
// CUDA_VISIBLE_DEVICES as CUDA reads it: numbers or UUIDs (a unique beginning is enough), nothing
// after the first entry that is invalid. Numbers are taken in PCI order, NVML's; CUDA's own default
// order is "fastest first", so where cards differ and CUDA_DEVICE_ORDER does not say PCI_BUS_ID a
// number is ambiguous, which is a warning. NVIDIA_VISIBLE_DEVICES is the container toolkit's. The
// operator's list holds UUIDs alone. An entry that comes twice is refused: no device is offered.
#ifndef ASSAY_AGENT_INVENTORY_VISIBLE_DEVICES_H_
#define ASSAY_AGENT_INVENTORY_VISIBLE_DEVICES_H_

#include <map>
#include <string>
#include <vector>

#include "common/fleet/inventory.h"

namespace assay {

struct VisibleDevices {
  std::vector<Device> devices;
  std::vector<std::string> warnings;
};

// `allowed` is the operator's list; empty: all.
VisibleDevices FilterVisible(const std::vector<Device>& devices,
                             const std::map<std::string, std::string>& environment,
                             const std::vector<std::string>& allowed);

// "a, b,c" without blanks and empty parts.
std::vector<std::string> SplitList(const std::string& text);

}  // namespace assay

#endif  // ASSAY_AGENT_INVENTORY_VISIBLE_DEVICES_H_
