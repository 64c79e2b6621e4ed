#include "common/net/state_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "common/status/status.h"

namespace assay {
namespace {

std::string_view KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISLNK(mode)) return "a link";
  return "a device";
}

// By the rights of the effective user, as open() has them.
absl::Status CheckAccess(const std::string& path, int mode, std::string_view what) {
  if (faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0 || errno == ENOENT) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      fmt::format("{} {} cannot be read and written: {}; give this user the right to, or another "
                  "folder with --state",
                  what, path, std::generic_category().message(errno)));
}

// An empty file is a store that was never written.
absl::Status CheckIsStore(const std::string& path) {
  constexpr std::string_view kHead("SQLite format 3\0", 16);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::OkStatus();
  std::array<char, 16> head = {};
  const ssize_t size = read(fd, head.data(), head.size());
  close(fd);
  if (size <= 0 || std::string_view(head.data(), static_cast<size_t>(size)) == kHead) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      fmt::format("store {} is no file of Assay's (file is not a database): move the file away to "
                  "begin afresh, and merge exported runs back in",
                  path));
}

}  // namespace

absl::Status CheckIsFile(const std::string& path, Links links) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (S_ISLNK(info.st_mode) && links == Links::kFollow && stat(path.c_str(), &info) != 0) {
    return absl::FailedPreconditionError(
        fmt::format("{} is a link that leads nowhere ({}): move it away", path,
                    std::generic_category().message(errno)));
  }
  if (S_ISREG(info.st_mode)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{} is {} where a file belongs: move it away", path, KindOf(info.st_mode)));
}

absl::Status CheckStateFiles(const std::string& dir) {
  ASSAY_RETURN_IF_ERROR(CheckAccess(dir, R_OK | W_OK | X_OK, "state directory"));
  for (const char* name : {"/lock", "/endpoint.json"}) {
    ASSAY_RETURN_IF_ERROR(CheckIsFile(dir + name, Links::kRefuse));
  }
  for (const char* name :
       {"/results.db", "/results.db-wal", "/results.db-shm", "/coordinator.log"}) {
    ASSAY_RETURN_IF_ERROR(CheckIsFile(dir + name));
  }
  // endpoint.json is replaced, never written.
  for (const char* name :
       {"/lock", "/results.db", "/results.db-wal", "/results.db-shm", "/coordinator.log"}) {
    ASSAY_RETURN_IF_ERROR(CheckAccess(dir + name, R_OK | W_OK, "file"));
  }
  return CheckIsStore(dir + "/results.db");
}

}  // namespace assay
