// RunnerEnvironment: everything a runner finds in its environment, built from typed fields. What
// the agent itself was started with does not leak into a measurement, but for an allow list.
#ifndef ASSAY_AGENT_CELL_RUNNER_ENVIRONMENT_H_
#define ASSAY_AGENT_CELL_RUNNER_ENVIRONMENT_H_

#include <map>
#include <string>

#include "common/fleet/inventory.h"

namespace assay {

using Environment = std::map<std::string, std::string>;

// The allowed part of `agent`, over it `stack`, over both what binds the device: the rank sees one
// GPU, by UUID, in PCI order (CUDA numbers the fastest first, NVML by bus: cases 7 and 11), and on
// a CPU none at all.
Environment RunnerEnvironment(const Environment& agent, const Environment& stack,
                              const Device& device);

// True for a name that is passed on from the agent's own environment.
bool IsPassedOn(const std::string& name);

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_RUNNER_ENVIRONMENT_H_
