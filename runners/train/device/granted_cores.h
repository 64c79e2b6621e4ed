// GrantedCores: how many cores this process may really use, which a container's quota makes fewer
// than it sees. More threads than that wait for each other at every step.
//
// Thread rule: any thread. Errors: what cannot be read does not limit.
#ifndef ASSAY_RUNNERS_TRAIN_DEVICE_GRANTED_CORES_H_
#define ASSAY_RUNNERS_TRAIN_DEVICE_GRANTED_CORES_H_

#include <string>

namespace assay::train {

// The least of the CPU affinity and the CPU quota of the process's control group and those above
// it (cpu.max of version 2, cpu.cfs_quota_us of version 1), rounded up; at least 1.
int GrantedCores();

// The quota alone, with /proc/self/cgroup and /sys/fs/cgroup found below `root` (tests; "" is the
// machine); 0 where there is none.
int QuotaCores(const std::string& root);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_DEVICE_GRANTED_CORES_H_
