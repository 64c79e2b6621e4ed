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

}  // namespace

absl::StatusOr<NewFile> NewFile::Create(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("cannot write {}: it is a folder", path));
  }
  std::string temporary = path + ".XXXXXX";
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return Failed(errno, path);
  // mkostemp gives 0600; a result file is as readable as any other that the user makes.
  const mode_t mask = umask(0);
  umask(mask);
  (void)fchmod(fd, 0666 & ~mask);
  return NewFile(path, std::move(temporary), fd);
}

NewFile::~NewFile() {
  if (fd_ < 0) return;
  close(fd_);
  (void)unlink(temporary_.c_str());
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
