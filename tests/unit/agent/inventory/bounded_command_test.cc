#include "agent/inventory/bounded_command.h"

#include <gtest/gtest.h>

#include "common/clock/clock.h"
#include "tests/unit/agent/host/folder.h"

namespace assay {
namespace {

constexpr std::chrono::milliseconds kLimit{20'000};
const std::map<std::string, std::string> kPath = {{"PATH", "/usr/bin:/bin"}};

class BoundedCommand : public testing::Test {
 protected:
  absl::StatusOr<CommandOutput> Run(const std::string& script,
                                    std::chrono::milliseconds limit = kLimit) {
    const BootTime begin = BootClock::now();
    auto result =
        RunBounded(folder_.Write("program", "#!/bin/sh\n" + script + "\n", true), {}, kPath, limit);
    took_ = BootClock::now() - begin;
    return result;
  }

  Folder folder_;
  BootClock::duration took_{};
};

TEST_F(BoundedCommand, GivesWhatTheProgramSaidAndHowItEnded) {
  const auto done = Run("echo out; echo err >&2; exit 7");
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->output, "out\n");
  EXPECT_EQ(done->errors, "err\n");
  EXPECT_EQ(done->exit_code, 7);
  EXPECT_EQ(done->signal, 0);
}

// An agent's start stood still for the whole limit for each stack that leaves a helper behind.
TEST_F(BoundedCommand, AGrandchildThatKeepsThePipeIsNotWaitedFor) {
  const auto done = Run("sleep 1000 & echo said");
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->output, "said\n");
  EXPECT_EQ(done->exit_code, 0);
  EXPECT_LT(took_, kLimit / 2);
}

TEST_F(BoundedCommand, AllThatAPipeHoldsAtTheEndIsRead) {
  const auto done = Run("head -c 60000 /dev/zero | tr '\\0' x; sleep 0");
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->output, std::string(60000, 'x'));
}

TEST_F(BoundedCommand, AProgramThatWritesWithoutEndIsStoppedAtTheLimit) {
  const auto done = Run("exec cat /dev/zero", std::chrono::milliseconds(300));
  EXPECT_EQ(done.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(BoundedCommand, AProgramThatIsMissingIsNamed) {
  const auto done = RunBounded(folder_.path() + "/none", {}, kPath, kLimit);
  EXPECT_EQ(done.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(done.status().message()).find("/none"), std::string::npos);
}

}  // namespace
}  // namespace assay
