#include "cli/new_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "common/status/status.h"

namespace assay::cli {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status Failed(int error, const std::string& path) {
  return ErrnoStatus(error, fmt::format("cannot write {}", path));
}

// The place behind a link; `path` itself where it is none.
absl::StatusOr<std::string> BehindLinks(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  char* const resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("cannot write {}: it is a link to what is not there; remove it", path));
  }
  std::string target = resolved;
  free(resolved);
  return target;
}

}  // namespace

absl::StatusOr<NewFile> NewFile::Create(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("the output has no name; name a file");
  struct stat info = {};
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("cannot write {}: it is a folder", path));
  }
  if (exists && !S_ISREG(info.st_mode)) {
    // O_NONBLOCK: a pipe that nobody reads must not make us wait.
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return Failed(errno, path);
    (void)fcntl(fd, F_SETFL, 0);
    return NewFile(path, "", fd);
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string place, BehindLinks(path));
  // Of a fixed length: a long name with something behind it may be too long.
  std::string temporary = FolderOf(place) + "/.assay.XXXXXX";
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return Failed(errno, path);
  // mkostemp gives 0600; a result file is as readable as any other that the user makes.
  const mode_t mask = umask(0);
  umask(mask);
  (void)fchmod(fd, 0666 & ~mask);
  return NewFile(place, std::move(temporary), fd);
}

NewFile::~NewFile() {
  if (fd_ < 0) return;
  close(fd_);
  if (!temporary_.empty()) (void)unlink(temporary_.c_str());
}

absl::Status NewFile::Append(std::string_view data) {
  while (!data.empty()) {
    const ssize_t written = write(fd_, data.data(), data.size());
    if (written >= 0) {
      data.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return Failed(errno, path_);
    }
  }
  return absl::OkStatus();
}

absl::Status NewFile::Commit() {
  if (temporary_.empty()) {
    const int closed = close(std::exchange(fd_, -1));
    return closed == 0 ? absl::OkStatus() : Failed(errno, path_);
  }
  if (fsync(fd_) != 0) return Failed(errno, path_);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return Failed(errno, path_);
  const int error = close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
  if (error != 0) return Failed(error, path_);
  const int folder = open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)fsync(folder);
    close(folder);
  }
  return absl::OkStatus();
}

}  // namespace assay::cli
