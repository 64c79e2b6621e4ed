// DeviceLock: one attempt a GPU on this machine, whichever coordinator or agent runs it.
//
// flock on DIR/UUID.lock. The descriptor is also handed to the rank that uses the device, so a GPU
// whose process outlived a killed agent stays locked until that process is gone too.
#ifndef ASSAY_AGENT_CELL_DEVICE_LOCK_H_
#define ASSAY_AGENT_CELL_DEVICE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "agent/process/unique_fd.h"

namespace assay {

// $ASSAY_LOCK_DIR (tests), else /tmp/assay-gpu-locks, which all users of the machine share.
std::string DeviceLockDir();

class DeviceLock {
 public:
  // Does not wait. ResourceExhausted when it is held, and only then; InvalidArgument for a UUID
  // that is no file name; FailedPrecondition, with what the system said, where the folder or the
  // file cannot be used. Creates `dir` (1777) and the file (0666).
  static absl::StatusOr<DeviceLock> Acquire(const std::string& dir, const std::string& uuid);

  int fd() const { return fd_.get(); }

 private:
  explicit DeviceLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_DEVICE_LOCK_H_
