#include "common/status/status.h"

#include <cerrno>
#include <system_error>

namespace assay {

absl::Status ErrnoStatus(int error, const std::string& what) {
  const std::string message = what + ": " + std::generic_category().message(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case EEXIST:
    case EADDRINUSE:
      return absl::AlreadyExistsError(message);
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(message);
    case ENAMETOOLONG:
    case ELOOP:
    case EISDIR:
    case ENXIO:
    case ENODEV:
      return absl::InvalidArgumentError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace assay
