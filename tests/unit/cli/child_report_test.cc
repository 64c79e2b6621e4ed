#include "cli/child_report.h"

#include <gtest/gtest.h>

#include "common/clock/clock.h"

namespace assay::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

absl::StatusOr<ChildReport> Shell(const std::string& script, milliseconds limit = seconds(20)) {
  return ReadChildReport("/bin/sh", {"-c", script}, "\n}\n", limit);
}

TEST(ReadChildReport, ReadsBothOutputsToTheirEnd) {
  const auto report = Shell("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->output, "out\n");
  EXPECT_EQ(report->errors, "err\n");
}

TEST(ReadChildReport, DoesNotWaitForAChildThatHasSaidAll) {
  const BootTime begin = BootClock::now();
  const auto report = Shell("printf '{\\n}\\n'; sleep 60");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->output, "{\n}\n");
  EXPECT_LT(BootClock::now() - begin, seconds(20));
}

TEST(ReadChildReport, EndsAtItsLimit) {
  const auto report = Shell("echo a; exec sleep 60", milliseconds(200));
  EXPECT_EQ(report.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(ReadChildReport, AProgramThatIsNotThereIsUnavailable) {
  EXPECT_EQ(ReadChildReport("/no/such/program", {}, "}", seconds(1)).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(ReadChildReport, OutputWithoutEndIsStopped) {
  EXPECT_EQ(Shell("exec cat /dev/zero").status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ReadChildReport, ArgumentsAreNoShellWords) {
  const auto report = ReadChildReport("/bin/echo", {"$(touch x)", "a b"}, "\n}\n", seconds(20));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->output, "$(touch x) a b\n");
}

}  // namespace
}  // namespace assay::cli
