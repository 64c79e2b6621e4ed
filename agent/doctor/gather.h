// GatherFacts: looks at this machine. The only part of the doctor that touches it.
//
// May take seconds: the driver answers or hangs (the Nvml given has its deadlines), every stack and
// mpirun is started with a deadline. Writes one file in the state directory and removes it again;
// creates no folder. What cannot be found out is left empty; nothing here fails or throws.
// Thread rule: one thread, which lives as long as the call (it starts programs).
#ifndef ASSAY_AGENT_DOCTOR_GATHER_H_
#define ASSAY_AGENT_DOCTOR_GATHER_H_

#include <map>
#include <string>

#include "agent/doctor/facts.h"
#include "agent/telemetry/nvml.h"

namespace assay {

struct GatherOptions {
  std::string node;  // empty: the host's name
  std::string version;
  std::string devices = "auto";  // as InventoryOptions
  std::string stacks_dir;
  std::string state_dir;  // empty: there is none, and why:
  std::string state_dir_error;
  std::string lock_dir;
  std::map<std::string, std::string> environment;
  // A cell is being measured: start no program, which would disturb it.
  bool measuring = false;
  // In front of /proc, /sys, /etc and /dev: a folder of fixtures, or empty.
  std::string root;
};

// `nvml` may be null (--devices cpu).
Facts GatherFacts(const GatherOptions& options, Nvml* nvml);

// --- parts that read files alone, for tests

// Type of the file system of `path` (absolute, without links) by the text of
// /proc/self/mountinfo; empty where no mount point is above it.
std::string FileSystemType(const std::string& mountinfo, const std::string& path);

// Processors in a list of the kernel's, "0-3,8": 5. 0 for what is no such list.
int CountOfList(const std::string& list);

}  // namespace assay

#endif  // ASSAY_AGENT_DOCTOR_GATHER_H_
