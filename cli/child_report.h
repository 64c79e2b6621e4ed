// ReadChildReport: starts a program of ours and reads one document from its standard output.
//
// Thread rule: the command's thread.
#ifndef ASSAY_CLI_CHILD_REPORT_H_
#define ASSAY_CLI_CHILD_REPORT_H_

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace assay::cli {

struct ChildReport {
  std::string output;
  std::string errors;  // the last 4 KiB of standard error
};

// No shell is involved. Reads until the end of the output or until it ends in `last_bytes`, since a
// thread that hangs in a driver may keep its process, and the pipe, from ending. Then, and after
// `limit`, the child is killed; one that not even SIGKILL ends is left behind. A Ctrl-C of the
// terminal reaches the child too. DeadlineExceeded after `limit`; Unavailable where it cannot be
// started; ResourceExhausted over 8 MiB.
absl::StatusOr<ChildReport> ReadChildReport(const std::string& program,
                                            const std::vector<std::string>& arguments,
                                            std::string_view last_bytes,
                                            std::chrono::milliseconds limit);

}  // namespace assay::cli

#endif  // ASSAY_CLI_CHILD_REPORT_H_
