#include "cli/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "common/net/state_dir.h"
#include "scripted_control.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;

class ConnectionTest : public ::testing::Test {
 protected:
  ConnectionTest() {
    std::string name = (std::filesystem::temp_directory_path() / "assay-conn-XXXXXX").string();
    dir_ = mkdtemp(name.data());
  }
  ~ConnectionTest() override { std::filesystem::remove_all(dir_); }

  absl::StatusOr<std::unique_ptr<Control>> Connect(std::chrono::seconds limit,
                                                   const std::string& coordinator = "") {
    ConnectionOptions options;
    options.state_dir = dir_;
    options.coordinator = coordinator;
    options.start_limit = limit;
    options.socket_after = socket_after_;
    options.interrupt_fd = interrupt_fd_;
    ConnectionPorts ports;
    ports.open = [this](const std::string& address) -> absl::StatusOr<std::unique_ptr<Control>> {
      opened_ = address;
      return std::unique_ptr<Control>(new ScriptedControl(script_));
    };
    ports.start = [this](const std::string&) -> absl::StatusOr<StartedProgram> {
      ++starts_;
      if (on_start_) on_start_();
      // A child that ends at once.
      const pid_t pid = fork();
      if (pid == 0) _exit(child_exit_);
      return StartedProgram{pid, 0};
    };
    Connection connection(options, ports);
    if (after_interrupt_) connection.GoOnAfterInterrupt(limit);
    return connection.Connect();
  }
  void Serve() { ASSERT_TRUE(WriteEndpoint(dir_, {"unix:/x", getpid(), "1"}).ok()); }

  std::string dir_;
  Script script_;
  std::string opened_;
  int starts_ = 0;
  int child_exit_ = 5;
  int interrupt_fd_ = -1;
  bool after_interrupt_ = false;
  std::chrono::milliseconds socket_after_ = ConnectionOptions().socket_after;
  std::function<void()> on_start_;
};

TEST_F(ConnectionTest, UsesTheCoordinatorOfTheEndpointFile) {
  Serve();
  EXPECT_TRUE(Connect(std::chrono::seconds(5)).ok());
  EXPECT_EQ(opened_, "unix:/x");
  EXPECT_EQ(starts_, 0);
}

TEST_F(ConnectionTest, StartsOneWhereNoneRuns) {
  on_start_ = [this] { Serve(); };
  EXPECT_TRUE(Connect(std::chrono::seconds(5)).ok());
  EXPECT_EQ(starts_, 1);
}

TEST_F(ConnectionTest, AnEndpointOfADeadProcessIsNoCoordinator) {
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  waitpid(dead, nullptr, 0);
  ASSERT_TRUE(WriteEndpoint(dir_, {"unix:/stale", dead, "1"}).ok());
  on_start_ = [this] { Serve(); };
  EXPECT_TRUE(Connect(std::chrono::seconds(5)).ok());
  EXPECT_EQ(opened_, "unix:/x");
}

TEST_F(ConnectionTest, AHeldLockIsWaitedForAndNotStartedAgainst) {
  auto lock = StateLock::Acquire(dir_);
  ASSERT_TRUE(lock.ok());
  const auto control = Connect(std::chrono::seconds(0));
  EXPECT_EQ(control.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(starts_, 0);
}

// On a full disk a coordinator cannot write where it listens.
TEST_F(ConnectionTest, AHeldLockWithoutAnEndpointIsLookedForAtItsSocketInTheEnd) {
  ASSERT_EQ(setenv("XDG_RUNTIME_DIR", dir_.c_str(), 1), 0);
  auto lock = StateLock::Acquire(dir_);
  ASSERT_TRUE(lock.ok());
  socket_after_ = std::chrono::milliseconds(0);
  EXPECT_TRUE(Connect(std::chrono::seconds(5)).ok());
  EXPECT_EQ(opened_, "unix:" + LocalSocketPath(dir_).value());
  EXPECT_EQ(starts_, 0);
  unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(ConnectionTest, OneThatCannotStartIsGivenUpWithTheEndOfItsLog) {
  on_start_ = [this] { std::ofstream(dir_ + "/coordinator.log") << "first\nbad header\n"; };
  const auto control = Connect(std::chrono::seconds(20));
  EXPECT_EQ(control.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(control.status().ToString(), HasSubstr("bad header"));
  EXPECT_THAT(control.status().ToString(), HasSubstr("exit code 5"));
  EXPECT_EQ(starts_, 2);
}

TEST_F(ConnectionTest, OneThatRefusesItsFilesIsQuotedAsBadInput) {
  child_exit_ = 2;
  on_start_ = [this] {
    std::ofstream(dir_ + "/coordinator.log")
        << "assay-coordinator: no sentence of its end\nnote\nassay-coordinator: move it away\n";
  };
  const auto control = Connect(std::chrono::seconds(20));
  EXPECT_EQ(control.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(control.status().message()), "move it away");
}

TEST_F(ConnectionTest, OneThatSaysNothingOfItsFilesIsToldWithTheEndOfItsLog) {
  child_exit_ = 2;
  on_start_ = [this] { std::ofstream(dir_ + "/coordinator.log") << "not assay-coordinator: x\n"; };
  const auto control = Connect(std::chrono::seconds(20));
  EXPECT_EQ(control.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(control.status().ToString(), HasSubstr("not assay-coordinator: x"));
}

TEST_F(ConnectionTest, CtrlCEndsTheWait) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  interrupt_fd_ = ends[0];
  auto lock = StateLock::Acquire(dir_);
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(Connect(std::chrono::seconds(20)).status().code(), absl::StatusCode::kCancelled);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ConnectionTest, ACtrlCThatWasTakenEndsNoLaterConnection) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  interrupt_fd_ = ends[0];
  after_interrupt_ = true;
  on_start_ = [this] { Serve(); };
  EXPECT_TRUE(Connect(std::chrono::seconds(15)).ok());
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ConnectionTest, ARemoteCoordinatorIsNeverStarted) {
  script_.info = absl::UnavailableError("connection refused");
  const auto control = Connect(std::chrono::seconds(5), "127.0.0.1:7070");
  EXPECT_EQ(control.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(control.status().ToString(), HasSubstr("127.0.0.1:7070"));
  EXPECT_EQ(starts_, 0);
}

TEST_F(ConnectionTest, LogTailGivesTheLastTenLinesSinceTheStart) {
  {
    std::ofstream log(dir_ + "/coordinator.log");
    log << "old\n";
    for (int i = 0; i < 20; ++i) log << "line " << i << "\n";
  }
  const std::string tail = LogTail(dir_, 4);
  EXPECT_EQ(tail.substr(0, tail.find('\n')), "line 10");
  EXPECT_THAT(tail, HasSubstr("line 19"));
  EXPECT_EQ(LogTail(dir_, 1 << 20), "");
}

}  // namespace
}  // namespace assay::cli
