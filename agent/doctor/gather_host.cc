#include "agent/doctor/gather_host.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>

#include "agent/host/proc_files.h"
#include "agent/process/unique_fd.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostInterfaces = 64;
constexpr int kMostProcessors = 1 << 16;

std::string ErrorText(int error) { return std::generic_category().message(error); }

int64_t NumberIn(const std::string& path) {
  const std::string text = ReadFileText(path, 64).value_or("");
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Empty where a TCP port of the kernel's choice can be bound and listened on.
std::string BindError(const sockaddr* address, socklen_t size) {
  const UniqueFd fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || bind(fd.get(), address, size) != 0 || listen(fd.get(), 1) != 0) {
    return ErrorText(errno);
  }
  return "";
}

// One address of getifaddrs, with port 0.
void AddAddress(const sockaddr* address, InterfaceFacts& to) {
  char text[INET6_ADDRSTRLEN] = {};
  std::string error;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof v4);
    v4.sin_port = 0;
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    error = BindError(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  } else {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof v6);
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return;
    v6.sin6_port = 0;
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    error = BindError(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  }
  to.addresses.emplace_back(text);
  if (!error.empty()) to.bind_error = fmt::format("{}: {}", text, error);
}

void GatherInterfaces(const std::string& sys_root, Facts& facts) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    facts.interfaces_error = ErrorText(errno);
    return;
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  const auto of_name = [&](const ifaddrs& entry) -> InterfaceFacts* {
    const std::string name = ScrubUtf8(entry.ifa_name);
    for (InterfaceFacts& known : facts.interfaces) {
      if (known.name == name) return &known;
    }
    if (facts.interfaces.size() == kMostInterfaces) return nullptr;
    InterfaceFacts made;
    made.name = name;
    made.loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
    made.carrier = (entry.ifa_flags & IFF_UP) != 0 && (entry.ifa_flags & IFF_RUNNING) != 0;
    const std::string folder = sys_root + "/class/net/" + name;
    std::error_code error;
    made.bridge = fs::exists(folder + "/bridge", error);
    made.mtu = NumberIn(folder + "/mtu");
    // -1, or an error, for what has no speed of its own.
    made.speed_megabits = std::max<int64_t>(0, NumberIn(folder + "/speed"));
    facts.interfaces.push_back(std::move(made));
    return &facts.interfaces.back();
  };
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_name == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    InterfaceFacts* interface = of_name(*entry);
    if (interface == nullptr || entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family == AF_INET || family == AF_INET6) AddAddress(entry->ifa_addr, *interface);
  }
}

ClockFacts GatherClock() {
  ClockFacts clock;
  timex answer{};
  if (adjtimex(&answer) < 0) {
    clock.error = ErrorText(errno);
    return clock;
  }
  clock.synchronised = (answer.status & STA_UNSYNC) == 0;
  clock.most_error_seconds = static_cast<double>(answer.maxerror) * 1e-6;
  return clock;
}

// Empty where a file could be written and removed.
std::string WriteError(const std::string& folder) {
  const std::string path = fmt::format("{}/.doctor-{}", folder, getpid());
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return ErrorText(errno);
  const std::string block(4096, '\0');
  const ssize_t written = write(fd.get(), block.data(), block.size());
  const int error = errno;
  unlink(path.c_str());
  if (written == static_cast<ssize_t>(block.size())) return "";
  return written < 0 ? ErrorText(error) : ErrorText(ENOSPC);
}

FolderFacts GatherStateFolder(const GatherOptions& options) {
  FolderFacts folder;
  folder.path = options.state_dir;
  if (folder.path.empty()) {
    folder.error = options.state_dir_error;
    return folder;
  }
  std::error_code error;
  fs::path nearest = folder.path;
  while (!fs::exists(nearest, error) && nearest.has_relative_path())
    nearest = nearest.parent_path();
  folder.nearest = nearest.string();
  folder.exists = folder.nearest == folder.path;
  if (!fs::is_directory(nearest, error)) {
    folder.error = fmt::format("{} is no folder", folder.nearest);
  } else if (folder.exists) {
    folder.error = WriteError(folder.path);
  } else if (access(folder.nearest.c_str(), W_OK | X_OK) != 0) {
    folder.error = fmt::format("{}: {}", folder.nearest, ErrorText(errno));
  }
  const fs::path real = fs::canonical(nearest, error);
  folder.file_type =
      FileSystemType(ReadFileText(options.root + "/proc/self/mountinfo").value_or(""),
                     error ? folder.nearest : real.string());
  struct statvfs info{};
  if (statvfs(folder.nearest.c_str(), &info) == 0) {
    folder.free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
    if (info.f_files > 0) folder.free_files = info.f_favail;
  }
  return folder;
}

LockFolderFacts GatherLocks(const GatherOptions& options) {
  LockFolderFacts locks;
  locks.path = options.lock_dir;
  struct stat info{};
  if (lstat(locks.path.c_str(), &info) != 0) {
    const std::string parent = fs::path(locks.path).parent_path().string();
    if (access(parent.c_str(), W_OK | X_OK) != 0) {
      locks.error =
          fmt::format("{} is not there, and {}: {}", locks.path, parent, ErrorText(errno));
    }
    return locks;
  }
  if (!S_ISDIR(info.st_mode)) {
    locks.error = fmt::format("{} is no folder", locks.path);
  } else if (access(locks.path.c_str(), W_OK | X_OK) != 0) {
    locks.error =
        fmt::format("{} (mode {:o}): {}", locks.path, info.st_mode & 07777U, ErrorText(errno));
  }
  std::error_code error;
  int seen = 0;
  for (fs::directory_iterator it(locks.path, error), end; !error && it != end && ++seen < 256;
       it.increment(error)) {
    if (it->path().extension() != ".lock") continue;
    // Opened and not locked: an offer that comes at this moment must not find it held.
    const std::string path = it->path().string();
    const UniqueFd fd(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!fd && errno != ENOENT && locks.error.empty()) {
      locks.error = fmt::format("{}: {}", path, ErrorText(errno));
    }
  }
  return locks;
}

LimitFacts GatherLimits(const std::string& sys_root) {
  LimitFacts limits;
  const auto known = [](rlim_t value) {
    return value == RLIM_INFINITY ? std::nullopt : std::optional<uint64_t>(value);
  };
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limits.open_files = known(limit.rlim_cur);
    limits.open_files_hard = known(limit.rlim_max);
  }
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) limits.locked_bytes = known(limit.rlim_cur);
  std::error_code error;
  const fs::directory_iterator devices(sys_root + "/class/infiniband", error);
  limits.infiniband = !error && devices != fs::directory_iterator();
  return limits;
}

CpuFacts GatherCpu(const std::string& proc_root, const std::string& sys_root) {
  CpuFacts cpu;
  cpu.listed = CpuCount(proc_root);
  cpu.allowed = AllowedProcessors(proc_root);
  cpu.allowed_count = CountOfList(cpu.allowed);
  cpu.quota = CgroupCpuQuota(proc_root, sys_root);
  if (const auto throttling = CgroupThrottling(proc_root, sys_root)) {
    cpu.throttled_count = throttling->periods;
  }
  for (int i = 0; i < std::min(cpu.listed, kMostProcessors); ++i) {
    const auto text = ReadFileText(
        fmt::format("{}/devices/system/cpu/cpu{}/cpufreq/scaling_governor", sys_root, i), 64);
    if (!text) continue;
    const std::vector<std::string> words = WordsOf(ScrubForTerminal(*text));
    if (!words.empty()) ++cpu.governors[words[0]];
  }
  return cpu;
}

// mountinfo writes blanks and backslashes as "\040".
std::string Unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 4], code, 8).ptr == &text[i + 4]) {
      out.push_back(static_cast<char>(code));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> out;
  for (std::string word; words >> word;) out.push_back(word);
  return out;
}

std::string FileSystemType(const std::string& mountinfo, const std::string& path) {
  std::istringstream lines(mountinfo);
  std::string type;
  size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    // "36 35 98:0 /root /mnt/point rw,noatime shared:1 - ext4 /dev/root rw"
    const size_t dash = line.find(" - ");
    const std::vector<std::string> left = WordsOf(line.substr(0, dash));
    if (dash == std::string::npos || left.size() < 5) continue;
    const std::vector<std::string> right = WordsOf(line.substr(dash + 3));
    std::string point = Unescaped(left[4]);
    if (point == "/") point.clear();
    const bool above = path == point || path.starts_with(point + "/");
    // A later mount on the same point hides the earlier one.
    if (!above || right.empty() || point.size() < longest) continue;
    longest = point.size();
    type = ScrubForTerminal(right[0]);
  }
  return type;
}

int CountOfList(const std::string& list) {
  int count = 0;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0, last = 0;
    const char* end = part.data() + part.size();
    const auto [dash, error] = std::from_chars(part.data(), end, first);
    last = first;
    if (error != std::errc() || (dash != end && *dash != '-')) return 0;
    if (dash != end && std::from_chars(dash + 1, end, last).ptr != end) return 0;
    if (first < 0 || last < first || last > kMostProcessors) return 0;
    count += last - first + 1;
  }
  return count;
}

void GatherHost(const GatherOptions& options, Facts& facts) {
  const std::string proc_root = options.root + "/proc", sys_root = options.root + "/sys";
  GatherInterfaces(sys_root, facts);
  facts.clock = GatherClock();
  facts.state = GatherStateFolder(options);
  facts.shm_path = "/dev/shm";
  struct statvfs shm{};
  if (statvfs((options.root + facts.shm_path).c_str(), &shm) == 0) {
    facts.shm_bytes = static_cast<uint64_t>(shm.f_blocks) * shm.f_frsize;
    facts.shm_free_bytes = static_cast<uint64_t>(shm.f_bavail) * shm.f_frsize;
  }
  facts.locks = GatherLocks(options);
  facts.limits = GatherLimits(sys_root);
  facts.cpu = GatherCpu(proc_root, sys_root);
}

}  // namespace assay
