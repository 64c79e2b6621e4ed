#include "agent/cell/device_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "agent/cell/rank_result.h"
#include "common/ids/ids.h"
#include "common/status/status.h"

namespace assay {
namespace {

// Of one code, whatever the system said: only a lock that is held is ResourceExhausted.
absl::Status Unusable(int error, const std::string& what) {
  return absl::FailedPreconditionError(Message(ErrnoStatus(error, what)));
}

}  // namespace

std::string DeviceLockDir() {
  const char* dir = std::getenv("ASSAY_LOCK_DIR");
  return dir != nullptr && *dir != '\0' ? dir : "/tmp/assay-gpu-locks";
}

absl::StatusOr<DeviceLock> DeviceLock::Acquire(const std::string& dir, const std::string& uuid) {
  if (!IsSafeId(uuid)) {
    return absl::InvalidArgumentError(fmt::format("the device's UUID is no file name: {}", uuid));
  }
  // mkdir's mode is cut by the umask.
  if (::mkdir(dir.c_str(), 0777) == 0) {
    ::chmod(dir.c_str(), 01777);
  } else if (errno != EEXIST) {
    return Unusable(errno, fmt::format("cannot create the folder of device locks {}", dir));
  }
  const std::string path = fmt::format("{}/{}.lock", dir, uuid);
  // Without O_CREAT first: in a sticky folder fs.protected_regular refuses O_CREAT on another
  // user's file.
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd fd(::open(path.c_str(), kFlags));
  if (!fd && errno == ENOENT) {
    fd = UniqueFd(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0666));
    if (fd) ::fchmod(fd.get(), 0666);
    if (!fd && errno == EEXIST) fd = UniqueFd(::open(path.c_str(), kFlags));
  }
  if (!fd) return Unusable(errno, "cannot open the device lock " + path);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(fmt::format("the device lock {} is not a file", path));
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return absl::ResourceExhaustedError(
          fmt::format("{} is in use by another attempt on this machine", uuid));
    }
    return Unusable(errno, "cannot lock " + path);
  }
  return DeviceLock(std::move(fd));
}

}  // namespace assay
