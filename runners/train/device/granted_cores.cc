#include "runners/train/device/granted_cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace assay::train {
namespace {

int CoresOf(double quota, double period) {
  if (!(quota > 0) || !(period > 0) || quota / period > 1e6) return 0;
  return std::max(1, static_cast<int>(std::ceil(quota / period)));
}

// "max 100000" or "150000 100000".
int CoresOfVersion2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period ? CoresOf(quota, period) : 0;
}

int CoresOfVersion1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quota_file >> quota && period_file >> period ? CoresOf(quota, period) : 0;
}

// In a container the path may be the host's, which is not there: then the mount's own root is the
// group.
int Least(const std::string& mount, std::string path, int (*cores_of)(const std::string&)) {
  int least = 0;
  while (true) {
    const int cores = cores_of(mount + path);
    if (cores > 0 && (least == 0 || cores < least)) least = cores;
    if (path.empty()) return least;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool HasController(const std::string& list, const std::string& name) {
  return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

}  // namespace

int QuotaCores(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  int least = 0;
  const auto take = [&](int cores) {
    if (cores > 0 && (least == 0 || cores < least)) least = cores;
  };
  // "0::/path" of version 2, "4:cpu,cpuacct:/path" of version 1.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
        take(Least(root + mount, path, CoresOfVersion2));
      }
    } else if (HasController(controllers, "cpu")) {
      for (const char* mount : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
        take(Least(root + mount, path, CoresOfVersion1));
      }
    }
  }
  return least;
}

int GrantedCores() {
  int cores = 0;
  cpu_set_t set;
  // Fails on a machine of more than 1024 processors.
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = CPU_COUNT(&set);
  if (cores <= 0) cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int quota = QuotaCores("");
  if (quota > 0) cores = std::min(cores, quota);
  return std::max(cores, 1);
}

}  // namespace assay::train
