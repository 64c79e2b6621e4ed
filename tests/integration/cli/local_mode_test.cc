// Local mode: the coordinator of the state directory is found or started, by one command or by two.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cli_fixture.h"
#include "common/net/state_dir.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;

// Programs find each other by their own place: a folder with the real assay and a stand-in for
// assay-coordinator.
class LocalMode : public CliTest {
 protected:
  LocalMode() {
    bin_ = dir_ + "/bin";
    std::filesystem::create_directory(bin_);
    std::filesystem::copy_file(AssayProgram(), bin_ + "/assay");
    std::filesystem::copy_file(FakeCoordinatorProgram(), bin_ + "/assay-coordinator");
  }
  ~LocalMode() override { StopCoordinator(SIGTERM); }

  void StopCoordinator(int number) const {
    const auto endpoint = ReadEndpoint(state_);
    if (!endpoint.ok() || endpoint->pid == getpid()) return;
    kill(static_cast<pid_t>(endpoint->pid), number);
    for (int i = 0; i < 500 && StateLock::IsHeld(state_); ++i) usleep(10000);
  }
  ProcessOptions Here(std::vector<std::string> environment = {}) const {
    ProcessOptions options = Options(std::move(environment));
    options.program = bin_ + "/assay";
    return options;
  }
  std::string Log() const {
    std::ifstream in(state_ + "/coordinator.log");
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  std::string bin_;
};

TEST_F(LocalMode, StartsACoordinatorThatOutlivesTheCommand) {
  std::filesystem::remove_all(state_);
  const Finished done = RunAssay({"ls"}, Here());
  EXPECT_EQ(done.code, 0) << done.err;
  const auto endpoint = ReadEndpoint(state_);
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(kill(static_cast<pid_t>(endpoint->pid), 0), 0);
  // In a session of its own: the terminal's Ctrl-C is not for it.
  EXPECT_EQ(getsid(static_cast<pid_t>(endpoint->pid)), endpoint->pid);
  struct stat info = {};
  ASSERT_EQ(stat(state_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_EQ(RunAssay({"ls"}, Here()).code, 0);
  EXPECT_EQ(ReadEndpoint(state_)->pid, endpoint->pid);
}

TEST_F(LocalMode, TwoAtOnceEndWithOneCoordinator) {
  AssayProcess one({"ls"}, Here());
  AssayProcess two({"ls"}, Here());
  AssayProcess three({"agents"}, Here());
  EXPECT_EQ(one.Wait().code, 0);
  EXPECT_EQ(two.Wait().code, 0);
  EXPECT_EQ(three.Wait().code, 0);
  EXPECT_TRUE(StateLock::IsHeld(state_));
}

TEST_F(LocalMode, AfterAKilledCoordinatorTheNextCommandStartsAnother) {
  EXPECT_EQ(RunAssay({"ls"}, Here()).code, 0);
  const int64_t first = ReadEndpoint(state_)->pid;
  StopCoordinator(SIGKILL);
  EXPECT_EQ(RunAssay({"ls"}, Here()).code, 0);
  EXPECT_NE(ReadEndpoint(state_)->pid, first);
}

TEST_F(LocalMode, ACoordinatorKilledInTheMiddleIsStartedAgainAndTheRunIsLookedFor) {
  AssayProcess child({"run", Matrix()}, Here({"FAKE_COORDINATOR=hold"}));
  ASSERT_TRUE(child.WaitForText("run 01J"));
  usleep(200000);
  const int64_t first = ReadEndpoint(state_)->pid;
  StopCoordinator(SIGKILL);
  const Finished done = child.Wait();
  // The stand-in keeps nothing, so the run is unknown to the second one; the real one keeps it.
  EXPECT_EQ(done.code, 2) << done.err;
  EXPECT_THAT(done.err, HasSubstr("there is no run"));
  EXPECT_NE(ReadEndpoint(state_)->pid, first);
}

TEST_F(LocalMode, OneThatCannotStartIsExitThreeWithItsLog) {
  const Finished done = RunAssay({"ls"}, Here({"FAKE_COORDINATOR=fail"}));
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("bad header"));
  EXPECT_THAT(done.err, HasSubstr("coordinator.log"));
}

TEST_F(LocalMode, AMissingProgramIsExitThreeWithItsPath) {
  std::filesystem::remove(bin_ + "/assay-coordinator");
  const Finished done = RunAssay({"ls"}, Here());
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("assay-coordinator"));
}

TEST_F(LocalMode, AStateDirectoryThatCannotBeMadeIsExitTwo) {
  const std::string file = Write("file", "");
  const Finished done = RunAssay({"ls", "--state", file + "/s"}, Here());
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr(file));
}

}  // namespace
}  // namespace assay::cli
