#include "common/net/state_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/ids/ids.h"
#include "common/net/address.h"
#include "common/net/state_files.h"
#include "common/status/status.h"

namespace assay {
namespace {

constexpr size_t kMaxEndpointBytes = 64 << 10;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

absl::StatusOr<std::string> MakeAbsolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("cannot resolve {}", path));
  std::string text = absolute.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

// At most `limit` bytes of a regular file.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t limit) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path));
  std::string text(limit + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = read(fd, text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      close(fd);
      return ErrnoStatus(error, fmt::format("cannot read {}", path));
    }
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  close(fd);
  if (size > limit) return absl::DataLossError(fmt::format("{} is over {} bytes", path, limit));
  text.resize(size);
  return text;
}

absl::Status WriteAll(int fd, const std::string& text, const std::string& path) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, fmt::format("cannot write {}", path));
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ResolveStateDir(const std::string& flag) {
  if (!flag.empty()) return MakeAbsolute(flag);
  if (const std::string dir = Environment("ASSAY_STATE"); !dir.empty()) return MakeAbsolute(dir);
  // The XDG rule: a relative value is to be ignored.
  if (const std::string xdg = Environment("XDG_STATE_HOME"); xdg.starts_with("/")) {
    return MakeAbsolute(xdg + "/assay");
  }
  if (const std::string home = Environment("HOME"); !home.empty()) {
    return MakeAbsolute(home + "/.local/state/assay");
  }
  return absl::FailedPreconditionError(
      "no state directory: give --state DIR, or set ASSAY_STATE or HOME");
}

absl::Status CreateStateDir(const std::string& dir) {
  std::error_code error;
  if (std::filesystem::is_directory(dir, error)) return absl::OkStatus();
  const std::filesystem::path parent = std::filesystem::path(dir).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("cannot create {}", parent.string()));
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, fmt::format("cannot create the state directory {}", dir));
  }
  if (!std::filesystem::is_directory(dir, error)) {
    return absl::FailedPreconditionError(fmt::format("state directory {} is not a folder", dir));
  }
  return absl::OkStatus();
}

absl::Status EnsurePrivateDir(const std::string& dir) {
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, fmt::format("cannot create {}", dir));
  }
  struct stat info;
  if (lstat(dir.c_str(), &info) != 0)
    return ErrnoStatus(errno, fmt::format("cannot look at {}", dir));
  if (!S_ISDIR(info.st_mode)) {
    return absl::PermissionDeniedError(fmt::format("{} is not a folder; remove it", dir));
  }
  if (info.st_uid != geteuid()) {
    return absl::PermissionDeniedError(
        fmt::format("{} belongs to user {}, not to this one ({})", dir, info.st_uid, geteuid()));
  }
  if ((info.st_mode & 0077) != 0) {
    return absl::PermissionDeniedError(fmt::format(
        "{} can be entered by others (mode {:o}); chmod 700 it", dir, info.st_mode & 07777));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> LocalSocketPath(const std::string& state_dir) {
  const std::string id = Sha256Hex(state_dir).substr(0, 12);
  if (const std::string xdg = Environment("XDG_RUNTIME_DIR"); xdg.starts_with("/")) {
    const std::string dir = fmt::format("{}/assay-{}", xdg, id);
    std::string path = dir + "/c.sock";
    if (path.size() <= kMaxUnixPathBytes && EnsurePrivateDir(dir).ok()) return path;
  }
  const std::string base = fmt::format("/tmp/assay-{}", geteuid());
  ASSAY_RETURN_IF_ERROR(EnsurePrivateDir(base));
  const std::string dir = fmt::format("{}/{}", base, id);
  ASSAY_RETURN_IF_ERROR(EnsurePrivateDir(dir));
  return dir + "/c.sock";
}

absl::StatusOr<StateLock> StateLock::Acquire(const std::string& state_dir) {
  const std::string path = state_dir + "/lock";
  ASSAY_RETURN_IF_ERROR(CheckIsFile(path, Links::kRefuse));
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  StateLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, fmt::format("cannot lock {}", path));
    std::string holder(32, '\0');
    const ssize_t n = pread(fd, holder.data(), holder.size(), 0);
    long pid = 0;
    if (n > 0) std::from_chars(holder.data(), holder.data() + n, pid);
    return absl::AlreadyExistsError(
        pid > 0 ? fmt::format("state directory {} is in use by the coordinator with pid {}",
                              state_dir, pid)
                : fmt::format("state directory {} is in use by another coordinator", state_dir));
  }
  // The pid only serves the sentence above; the lock itself is the kernel's, and a full disk must
  // not keep anybody from reading results.
  const std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(fd, 0) == 0) (void)!pwrite(fd, pid.data(), pid.size(), 0);
  return lock;
}

bool StateLock::IsHeld(const std::string& state_dir) {
  // O_NONBLOCK: a pipe of that name must not make anybody wait.
  const int fd =
      open((state_dir + "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  // A shared lock, so that two that ask at once do not see each other.
  const bool held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return held;
}

StateLock& StateLock::operator=(StateLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

StateLock::~StateLock() {
  if (fd_ >= 0) close(fd_);
}

absl::Status WriteFileAtomically(const std::string& path, const std::string& text,
                                 Durability durability) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot create {}", temporary));
  absl::Status status = WriteAll(fd, text, temporary);
  const bool sync = durability == Durability::kDisk;
  if (status.ok() && sync && fsync(fd) != 0) {
    status = ErrnoStatus(errno, fmt::format("cannot sync {}", temporary));
  }
  close(fd);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, fmt::format("cannot put {} in place", path));
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  if (!sync) return status;
  const std::string dir = std::filesystem::path(path).parent_path().string();
  const int dir_fd = open(dir.empty() ? "." : dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir_fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", dir));
  if (fsync(dir_fd) != 0) status = ErrnoStatus(errno, fmt::format("cannot sync {}", dir));
  close(dir_fd);
  return status;
}

absl::Status WriteEndpoint(const std::string& state_dir, const Endpoint& endpoint) {
  const nlohmann::json json = {
      {"address", endpoint.address}, {"pid", endpoint.pid}, {"version", endpoint.version}};
  return WriteFileAtomically(
      state_dir + "/endpoint.json",
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

absl::StatusOr<Endpoint> ReadEndpoint(const std::string& state_dir) {
  const std::string path = state_dir + "/endpoint.json";
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kMaxEndpointBytes));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto broken = [&] {
    return absl::DataLossError(fmt::format("{} is not an endpoint file; remove it", path));
  };
  if (!json.is_object()) return broken();
  const auto address = json.find("address");
  const auto pid = json.find("pid");
  if (address == json.end() || !address->is_string() || pid == json.end() ||
      !pid->is_number_integer()) {
    return broken();
  }
  Endpoint endpoint;
  endpoint.address = address->get<std::string>();
  endpoint.pid = pid->get<int64_t>();
  if (const auto version = json.find("version"); version != json.end() && version->is_string()) {
    endpoint.version = version->get<std::string>();
  }
  return endpoint;
}

void RemoveEndpoint(const std::string& state_dir, int64_t pid) {
  const absl::StatusOr<Endpoint> endpoint = ReadEndpoint(state_dir);
  if (endpoint.ok() && endpoint->pid == pid) unlink((state_dir + "/endpoint.json").c_str());
}

}  // namespace assay
