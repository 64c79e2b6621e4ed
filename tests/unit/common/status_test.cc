#include "common/status/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <utility>

namespace assay {
namespace {

TEST(ErrnoStatus, ChoosesTheCodeAndKeepsTheText) {
  const absl::Status missing = ErrnoStatus(ENOENT, "cannot read 'x'");
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(missing), "cannot read 'x': No such file or directory");
  EXPECT_EQ(ErrnoStatus(EACCES, "").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrnoStatus(ENOSPC, "").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(EADDRINUSE, "").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ErrnoStatus(EIO, "").code(), absl::StatusCode::kInternal);
}

absl::Status PassOn(const absl::Status& status, bool& went_on) {
  ASSAY_RETURN_IF_ERROR(status);
  went_on = true;
  return absl::OkStatus();
}

TEST(ReturnIfError, ReturnsTheErrorAtOnce) {
  bool went_on = false;
  EXPECT_EQ(PassOn(absl::NotFoundError("gone"), went_on), absl::NotFoundError("gone"));
  EXPECT_FALSE(went_on);
}

TEST(ReturnIfError, GoesOnWhenAllIsWell) {
  bool went_on = false;
  EXPECT_TRUE(PassOn(absl::OkStatus(), went_on).ok());
  EXPECT_TRUE(went_on);
}

absl::StatusOr<int> Unpack(absl::StatusOr<std::unique_ptr<int>> given) {
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<int> number, std::move(given));
  return *number;
}

TEST(AssignOrReturn, MovesTheValueOut) { EXPECT_EQ(*Unpack(std::make_unique<int>(7)), 7); }

TEST(AssignOrReturn, ReturnsTheError) {
  EXPECT_EQ(Unpack(absl::InternalError("broken")).status(), absl::InternalError("broken"));
}

}  // namespace
}  // namespace assay
