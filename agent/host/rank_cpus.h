// RankCpus: on which processors a rank runs, and what they are set to.
//
// A rank beside its GPU's memory controller and PCIe root reaches both without the link between
// sockets; which socket the kernel would choose is chance, and chance is spread between processes.
// Pure but for reading /sys and the kernel's masks. Thread rule: any thread.
#ifndef ASSAY_AGENT_HOST_RANK_CPUS_H_
#define ASSAY_AGENT_HOST_RANK_CPUS_H_

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/results/record.h"

namespace assay {

// "0-3,8" as numbers, in order; what is no such list is empty.
std::vector<int> CpusOfList(std::string_view list);
std::string ListOfCpus(const std::vector<int>& cpus);  // in order, without repetition

// Those of a NUMA node that are among `allowed`; empty where the node is not known (-1).
std::vector<int> CpusOfNode(const std::string& sys_root, int numa_node,
                            const std::vector<int>& allowed);

// The processors that a process may use, cpusets and affinity taken together; 0 is the caller.
// Empty where it is gone.
std::vector<int> AffinityOf(pid_t pid);

// How one rank was placed, for the record.
struct RankPlacement {
  int numa_node = -1;     // of its GPU
  bool has_gpu = false;   // else nothing is said of a NUMA node
  std::vector<int> near;  // asked for; empty: not pinned
  std::vector<int> cpus;  // what it got, read back
};
// Sets numa_node, numa_pinned, rank_cpus and cpu_governor as far as they are known.
void FillPlacement(const RankPlacement& placement, const std::string& sys_root, Record& record);

}  // namespace assay

#endif  // ASSAY_AGENT_HOST_RANK_CPUS_H_
