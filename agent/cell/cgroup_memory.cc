#include "agent/cell/cgroup_memory.h"

#include <fstream>

namespace assay {

uint64_t OomKillCount(const std::string& proc, const std::string& sys) {
  std::ifstream cgroups(proc + "/self/cgroup");
  std::string line;
  std::string path = "/";
  while (std::getline(cgroups, line)) {
    if (line.starts_with("0::")) path = line.substr(3);
  }
  std::ifstream events(sys + "/fs/cgroup" + path + "/memory.events");
  std::string name;
  uint64_t count = 0;
  while (events >> name >> count) {
    if (name == "oom_kill") return count;
  }
  return 0;
}

}  // namespace assay
