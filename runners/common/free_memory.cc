#include "runners/common/free_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>

namespace assay {
namespace {

std::optional<int64_t> FirstNumber(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // "max"
}

std::optional<int64_t> MemAvailableBytes(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string name;
  int64_t kib = 0;
  for (std::string line; file >> name >> kib && std::getline(file, line);) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

// "0::/path".
std::string ControlGroup(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) return line.substr(3) == "/" ? "" : line.substr(3);
  }
  return "";
}

}  // namespace

std::optional<int64_t> FreeMemoryBytes(const std::string& root) {
  std::optional<int64_t> least = MemAvailableBytes(root);
  // In a container the path may be the host's, which is not there: then the mount's own root is the
  // group.
  for (std::string path = ControlGroup(root);;) {
    const std::string folder = root + "/sys/fs/cgroup" + path;
    const auto limit = FirstNumber(folder + "/memory.max");
    const auto used = FirstNumber(folder + "/memory.current");
    if (limit && used) {
      const int64_t left = std::max<int64_t>(0, *limit - *used);
      least = least ? std::min(*least, left) : left;
    }
    if (path.empty()) return least;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

void LimitMemoryToWhatIsFree() {
  const std::optional<int64_t> free = FreeMemoryBytes("");
  rlimit limit{};
  if (!free || getrlimit(RLIMIT_DATA, &limit) != 0) return;
  const auto most = static_cast<rlim_t>(*free / 10 * 9);
  if (limit.rlim_cur <= most) return;
  limit.rlim_cur = most;
  setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace assay
