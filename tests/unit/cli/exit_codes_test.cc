#include "cli/exit_codes.h"

#include <gtest/gtest.h>

namespace assay::cli {
namespace {

// Case 45: distinct codes for what the user got wrong, what could not be done, and what was
// stopped.
TEST(ExitCodeOfError, BadInputIsTwo) {
  EXPECT_EQ(ExitCodeOfError(absl::InvalidArgumentError("m")), 2);
  EXPECT_EQ(ExitCodeOfError(absl::NotFoundError("no such run")), 2);
  EXPECT_EQ(ExitCodeOfError(absl::FailedPreconditionError("m")), 2);
  EXPECT_EQ(ExitCodeOfError(absl::PermissionDeniedError("m")), 2);
  EXPECT_EQ(ExitCodeOfError(absl::ResourceExhaustedError("disk full")), 2);
  EXPECT_EQ(ExitCodeOfError(absl::DataLossError("cut file")), 2);
}

TEST(ExitCodeOfError, NobodyThereIsThree) {
  EXPECT_EQ(ExitCodeOfError(absl::UnavailableError("m")), 3);
  EXPECT_EQ(ExitCodeOfError(absl::DeadlineExceededError("m")), 3);
  EXPECT_EQ(ExitCodeOfError(absl::InternalError("m")), 3);
}

TEST(ExitCodeOfError, StoppedIs130AndOkIsZero) {
  EXPECT_EQ(ExitCodeOfError(absl::CancelledError("m")), 130);
  EXPECT_EQ(ExitCodeOfError(absl::OkStatus()), 0);
}

}  // namespace
}  // namespace assay::cli
