#include "agent/host/proc_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace assay {
namespace {

std::string Trimmed(std::string text) {
  const auto space = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!text.empty() && space(text.back())) text.pop_back();
  size_t begin = 0;
  while (begin < text.size() && space(text[begin])) ++begin;
  return text.substr(begin);
}

// Value of "key : value", of the first line whose key is that.
std::string ValueOf(const std::string& text, const std::string& key, char separator) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(separator);
    if (at != std::string::npos && Trimmed(line.substr(0, at)) == key) {
      return Trimmed(line.substr(at + 1));
    }
  }
  return "";
}

std::optional<uint64_t> NumberOf(const std::string& text) {
  const std::string trimmed = Trimmed(text);
  uint64_t value = 0;
  const char* end = trimmed.data() + trimmed.size();
  const auto [stop, error] = std::from_chars(trimmed.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// The least limit in `folder`/`path` and every folder above it up to `folder` itself.
std::optional<uint64_t> LeastLimit(const std::string& folder, std::string path,
                                   const std::string& file) {
  std::optional<uint64_t> least;
  for (;;) {
    if (const auto text = ReadFileText(fmt::format("{}{}/{}", folder, path, file), 64)) {
      // "max" is no number; version 1 writes a number near 2^63 for no limit.
      const auto limit = NumberOf(*text);
      if (limit && *limit < (uint64_t{1} << 62)) least = std::min(least.value_or(*limit), *limit);
    }
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return least;
    path.resize(slash);
  }
}

// Of this process in cgroup v2, and in the hierarchy of `controller` of version 1.
struct CgroupPaths {
  std::string unified, of_controller;
};

CgroupPaths PathsOfCgroup(const std::string& proc_root, const std::string& controller) {
  CgroupPaths paths;
  std::istringstream lines(ReadFileText(proc_root + "/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    // "0::/path", "9:memory:/path" or "4:cpu,cpuacct:/path"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers == ",,") paths.unified = path;
    if (controllers.find("," + controller + ",") != std::string::npos) paths.of_controller = path;
  }
  return paths;
}

std::optional<uint64_t> CgroupLimit(const std::string& proc_root, const std::string& sys_root) {
  const CgroupPaths paths = PathsOfCgroup(proc_root, "memory");
  const auto v2 = LeastLimit(sys_root + "/fs/cgroup", paths.unified, "memory.max");
  const auto v1 =
      LeastLimit(sys_root + "/fs/cgroup/memory", paths.of_controller, "memory.limit_in_bytes");
  if (v1 && v2) return std::min(*v1, *v2);
  return v1 ? v1 : v2;
}

// Of one folder: "200000 100000" in cpu.max, or version 1's two files, where -1 is no limit.
std::optional<double> QuotaOf(const std::string& folder) {
  std::string quota, period;
  if (const auto text = ReadFileText(folder + "/cpu.max", 64)) {
    std::istringstream(*text) >> quota >> period;
  } else {
    quota = ReadFileText(folder + "/cpu.cfs_quota_us", 64).value_or("");
    period = ReadFileText(folder + "/cpu.cfs_period_us", 64).value_or("");
  }
  const auto granted = NumberOf(quota), of = NumberOf(period);
  if (!granted || !of || *of == 0) return std::nullopt;
  return static_cast<double>(*granted) / static_cast<double>(*of);
}

// The folders that may limit this process's time, in both versions, from its own upwards.
template <class Visit>
void ForEachCpuGroup(const std::string& proc_root, const std::string& sys_root, Visit visit) {
  const CgroupPaths paths = PathsOfCgroup(proc_root, "cpu");
  for (auto [folder, path] : {std::pair(sys_root + "/fs/cgroup", paths.unified),
                              std::pair(sys_root + "/fs/cgroup/cpu", paths.of_controller)}) {
    for (;;) {
      visit(folder + path);
      const size_t slash = path.rfind('/');
      if (slash == std::string::npos) break;
      path.resize(slash);
    }
  }
}

}  // namespace

std::optional<std::string> ReadFileText(const std::string& path, size_t most) {
  // A pipe would keep the agent waiting for a writer. What /proc and /sys show are regular files.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  if (file.bad()) return std::nullopt;
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

std::string CpuModel(const std::string& proc_root) {
  const std::string text = ReadFileText(proc_root + "/cpuinfo").value_or("");
  for (const char* key : {"model name", "Hardware"}) {
    if (std::string value = ValueOf(text, key, ':'); !value.empty()) return value;
  }
  const std::string implementer = ValueOf(text, "CPU implementer", ':');
  const std::string part = ValueOf(text, "CPU part", ':');
  return implementer.empty() ? "" : "CPU " + implementer + " " + part;
}

int CpuCount(const std::string& proc_root) {
  std::istringstream lines(ReadFileText(proc_root + "/cpuinfo", 16 << 20).value_or(""));
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && Trimmed(line.substr(0, colon)) == "processor") ++count;
  }
  return count;
}

uint64_t MachineMemoryBytes(const std::string& proc_root, const std::string& sys_root) {
  std::string total = ValueOf(ReadFileText(proc_root + "/meminfo").value_or(""), "MemTotal", ':');
  if (const size_t unit = total.find(" kB"); unit != std::string::npos) total.resize(unit);
  const uint64_t bytes = NumberOf(total).value_or(0) * 1024;
  const auto limit = CgroupLimit(proc_root, sys_root);
  if (limit && (bytes == 0 || *limit < bytes)) return *limit;
  return bytes;
}

std::string ValueOfKey(const std::string& text, const std::string& key, char separator) {
  return ValueOf(text, key, separator);
}

std::optional<double> CgroupCpuQuota(const std::string& proc_root, const std::string& sys_root) {
  std::optional<double> least;
  ForEachCpuGroup(proc_root, sys_root, [&](const std::string& folder) {
    if (const auto quota = QuotaOf(folder)) least = std::min(least.value_or(*quota), *quota);
  });
  return least;
}

std::optional<CpuThrottling> CgroupThrottling(const std::string& proc_root,
                                              const std::string& sys_root) {
  std::optional<CpuThrottling> sum;
  ForEachCpuGroup(proc_root, sys_root, [&](const std::string& folder) {
    const auto text = ReadFileText(folder + "/cpu.stat", 4096);
    if (!text) return;
    const auto periods = NumberOf(ValueOf(*text, "nr_throttled", ' '));
    const auto microseconds = NumberOf(ValueOf(*text, "throttled_usec", ' '));
    const auto nanoseconds = NumberOf(ValueOf(*text, "throttled_time", ' '));  // version 1
    if (!periods || (!microseconds && !nanoseconds)) return;
    if (!sum) sum.emplace();
    sum->periods += *periods;
    sum->seconds += microseconds ? static_cast<double>(*microseconds) * 1e-6
                                 : static_cast<double>(*nanoseconds) * 1e-9;
  });
  return sum;
}

std::string AllowedProcessors(const std::string& proc_root) {
  return ValueOf(ReadFileText(proc_root + "/self/status", 65536).value_or(""), "Cpus_allowed_list",
                 ':');
}

std::string MachineId(const std::string& etc_root) {
  return Trimmed(ReadFileText(etc_root + "/machine-id", 256).value_or(""));
}

std::string BootId(const std::string& proc_root) {
  return Trimmed(ReadFileText(proc_root + "/sys/kernel/random/boot_id", 256).value_or(""));
}

std::string OsName(const std::string& etc_root) {
  std::string name =
      ValueOf(ReadFileText(etc_root + "/os-release", 65536).value_or(""), "PRETTY_NAME", '=');
  if (name.size() >= 2 && name.front() == '"' && name.back() == '"') {
    name = name.substr(1, name.size() - 2);
  }
  return name;
}

int NumaNode(const std::string& sys_root, const std::string& pci_bus_id) {
  std::string id = pci_bus_id;
  for (char& c : id) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  // NVML writes the domain with eight digits, sysfs with at least four.
  const size_t colon = id.find(':');
  if (colon == 8 && id.starts_with("0000")) id = id.substr(4);
  if (id.empty() || id.find('/') != std::string::npos || id.find("..") != std::string::npos) {
    return -1;
  }
  const auto text = ReadFileText(sys_root + "/bus/pci/devices/" + id + "/numa_node", 64);
  const auto node = text ? NumberOf(*text) : std::nullopt;  // the kernel's -1 is no number here
  return node && *node < 4096 ? static_cast<int>(*node) : -1;
}

bool HasNvidiaDriver(const std::string& proc_root) {
  struct stat info{};
  return stat((proc_root + "/driver/nvidia/version").c_str(), &info) == 0;
}

std::optional<uint64_t> FileSystemBytes(const std::string& path) {
  struct statvfs info{};
  if (statvfs(path.c_str(), &info) != 0) return std::nullopt;
  return static_cast<uint64_t>(info.f_blocks) * info.f_frsize;
}

}  // namespace assay
