// Exit codes of `assay`, the same for every command (docs/results.md).
#ifndef ASSAY_CLI_EXIT_CODES_H_
#define ASSAY_CLI_EXIT_CODES_H_

#include "absl/status/status.h"

namespace assay::cli {

inline constexpr int kExitOk = 0;
// A cell ended as fail, hung, timeout or lost, or is invalid; others are ok and valid.
inline constexpr int kExitCellFailed = 1;
inline constexpr int kExitSlower = 1;        // compare --by run: something became slower
inline constexpr int kExitSomethingBad = 1;  // doctor: a check is bad
inline constexpr int kExitBadInput = 2;      // file, flag, unknown run or cell, output not writable
inline constexpr int kExitNothingRun = 3;    // no coordinator, no agent, no valid figure
inline constexpr int kExitCancelled = 130;
inline constexpr int kExitTerminated = 143;  // as 130, by SIGTERM

// Of an error that ends a command: what the user asked for was wrong (2), nobody could do it (3),
// or the user stopped it (130).
inline int ExitCodeOfError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kCancelled:
      return kExitCancelled;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kAborted:
      return kExitNothingRun;
    default:
      return kExitBadInput;
  }
}

}  // namespace assay::cli

#endif  // ASSAY_CLI_EXIT_CODES_H_
