#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/status/status.h"
#include "common/yaml/yaml_tree.h"

namespace assay {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t most_bytes) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const std::string shown = Printable(path, 300);
  if (file.get() < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", shown));
  struct stat info = {};
  if (fstat(file.get(), &info) != 0)
    return ErrnoStatus(errno, fmt::format("cannot read {}", shown));
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("{} is a folder; name a file", shown));
  }
  // A pipe (`<(...)`) has a size of 0 and is read below; it must wait for its writer.
  if (!S_ISREG(info.st_mode)) fcntl(file.get(), F_SETFL, 0);
  std::string text;
  char buffer[16384];
  while (text.size() <= most_bytes) {
    const size_t want = std::min(sizeof(buffer), most_bytes + 1 - text.size());
    const ssize_t got = read(file.get(), buffer, want);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", shown));
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
  return absl::InvalidArgumentError(fmt::format(
      "{}:1:1: (file): larger than {} bytes; use ranges or several files", shown, most_bytes));
}

}  // namespace assay
