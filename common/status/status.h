// Helpers over absl::Status. Messages say what was tried, where, and what to do next.
#ifndef ASSAY_COMMON_STATUS_STATUS_H_
#define ASSAY_COMMON_STATUS_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define ASSAY_RETURN_IF_ERROR(expr)                                 \
  do {                                                              \
    if (absl::Status assay_status_ = (expr); !assay_status_.ok()) { \
      return assay_status_;                                         \
    }                                                               \
  } while (false)

// `lhs` may be a declaration, so it takes no parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define ASSAY_CONCAT_INNER_(a, b) a##b
#define ASSAY_CONCAT_(a, b) ASSAY_CONCAT_INNER_(a, b)
#define ASSAY_ASSIGN_OR_RETURN(lhs, expr) \
  ASSAY_ASSIGN_OR_RETURN_(ASSAY_CONCAT_(assay_or_, __LINE__), lhs, expr)
#define ASSAY_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return tmp.status();           \
  lhs = std::move(tmp).value()
// NOLINTEND(bugprone-macro-parentheses)

namespace assay {

// "<what>: <strerror>" with a code by errno: NotFound, PermissionDenied, AlreadyExists,
// ResourceExhausted (no space, quota, descriptors), else Internal.
absl::Status ErrnoStatus(int error, const std::string& what);

// The message as a std::string (Debian's absl::string_view is not std::string_view).
inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

}  // namespace assay

#endif  // ASSAY_COMMON_STATUS_STATUS_H_
