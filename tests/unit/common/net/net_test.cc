#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/net/address.h"
#include "common/net/backoff.h"
#include "common/net/state_dir.h"
#include "common/net/state_files.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST(AddressTest, EachFormReadsBackAsItIsShown) {
  for (const char* text :
       {"unix:/run/x/c.sock", "127.0.0.1:7070", "[::1]:0", "localhost:65535", "node-1.lan:1"}) {
    const auto address = ParseAddress(text);
    ASSERT_TRUE(address.ok()) << text << ": " << address.status();
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(AddressTest, WhatIsNoAddressIsRefusedWithASentenceThatQuotesIt) {
  for (const std::string& text :
       {std::string(), std::string("host"), std::string("host:"), std::string(":1"),
        std::string("host:65536"), std::string("host:-1"), std::string("host:1x"),
        std::string("::1:80"), std::string("[::1]"), std::string("[::1]80"),
        std::string("[nope]:80"), std::string("unix:relative"), std::string("unix:"),
        std::string("a b:1"), std::string("a\n:1"), "unix:/" + std::string(107, 'x'),
        std::string(1'000'000, 'x') + ":1"}) {
    const auto address = ParseAddress(text);
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << text.substr(0, 40);
    EXPECT_LT(address.status().message().size(), 400u);
  }
}

TEST(AddressTest, LongestUnixPathIsTaken) {
  EXPECT_TRUE(ParseAddress("unix:/" + std::string(kMaxUnixPathBytes - 1, 'x')).ok());
}

class StateDirTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/assay-state-XXXXXX";
    dir_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
};

TEST_F(StateDirTest, FlagBeatsEnvironmentBeatsXdgBeatsHome) {
  setenv("HOME", "/h", 1);
  unsetenv("XDG_STATE_HOME");
  unsetenv("ASSAY_STATE");
  EXPECT_EQ(*ResolveStateDir(""), "/h/.local/state/assay");
  setenv("XDG_STATE_HOME", "relative", 1);
  EXPECT_EQ(*ResolveStateDir(""), "/h/.local/state/assay");
  setenv("XDG_STATE_HOME", "/x", 1);
  EXPECT_EQ(*ResolveStateDir(""), "/x/assay");
  setenv("ASSAY_STATE", "/s/", 1);
  EXPECT_EQ(*ResolveStateDir(""), "/s");
  EXPECT_EQ(*ResolveStateDir("/f/../g"), "/g");
  unsetenv("ASSAY_STATE");
  unsetenv("XDG_STATE_HOME");
}

TEST_F(StateDirTest, SecondLockIsRefusedWithThePidOfTheFirst) {
  auto first = StateLock::Acquire(dir_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(StateLock::IsHeld(dir_));
  const auto second = StateLock::Acquire(dir_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(std::to_string(getpid())));
}

TEST_F(StateDirTest, LockIsFreeAgainWhenItsOwnerIsGone) {
  {
    auto lock = StateLock::Acquire(dir_);
  }
  EXPECT_FALSE(StateLock::IsHeld(dir_));
  EXPECT_TRUE(StateLock::Acquire(dir_).ok());
}

// A full disk must not keep anybody from reading results.
TEST_F(StateDirTest, LockNeedsNoRoomOnTheDisk) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    const auto lock = StateLock::Acquire(dir_);
    _exit(lock.ok() && StateLock::IsHeld(dir_) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(StateDirTest, EndpointReadsBackAndOnlyItsOwnerRemovesIt) {
  ASSERT_TRUE(WriteEndpoint(dir_, {"unix:/a", 42, "0.1.0"}).ok());
  const auto endpoint = ReadEndpoint(dir_);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->address, "unix:/a");
  EXPECT_EQ(endpoint->pid, 42);
  RemoveEndpoint(dir_, 43);
  EXPECT_TRUE(ReadEndpoint(dir_).ok());
  RemoveEndpoint(dir_, 42);
  EXPECT_EQ(ReadEndpoint(dir_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StateDirTest, BrokenEndpointFileIsDataLoss) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"),
        std::string("{\"address\":1,\"pid\":2}"), std::string("{\"address\":\"a\",\"pid\":1.5}"),
        std::string(100'000, '[')}) {
    std::ofstream(dir_ + "/endpoint.json") << text;
    EXPECT_EQ(ReadEndpoint(dir_).status().code(), absl::StatusCode::kDataLoss) << text.substr(0, 9);
  }
}

constexpr const char* kStateFiles[] = {"lock",           "endpoint.json",  "results.db",
                                       "results.db-wal", "results.db-shm", "coordinator.log"};

TEST_F(StateDirTest, FilesOfItThatAreThereOrMissingAreFine) {
  EXPECT_TRUE(CheckStateFiles(dir_).ok());
  for (const std::string name : kStateFiles) std::ofstream(dir_ + "/" + name);
  EXPECT_TRUE(CheckStateFiles(dir_).ok());
  std::ofstream(dir_ + "/results.db") << std::string("SQLite format 3\0 and so on", 26);
  EXPECT_TRUE(CheckStateFiles(dir_).ok());
}

TEST_F(StateDirTest, WhatIsNoFileIsNamedWithWhatToDo) {
  for (const std::string name : kStateFiles) {
    const std::string path = dir_ + "/" + name;
    const auto refused = [&](const char* what) {
      const absl::Status status = CheckStateFiles(dir_);
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(status.ToString(), HasSubstr(path + " is " + what));
      EXPECT_THAT(status.ToString(), HasSubstr("move it away"));
      std::filesystem::remove(path);
    };
    std::filesystem::create_directory(path);
    refused("a folder");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    refused("a pipe");
    std::filesystem::create_symlink("/nowhere", path);
    refused("a link");
    std::filesystem::create_symlink("/dev/null", path);
    refused(name == "lock" || name == "endpoint.json" ? "a link" : "a device");
  }
}

TEST_F(StateDirTest, AStoreOnAnotherDiskMayBeALink) {
  std::ofstream(dir_ + "/elsewhere");
  std::filesystem::create_symlink(dir_ + "/elsewhere", dir_ + "/results.db");
  EXPECT_TRUE(CheckStateFiles(dir_).ok());
}

TEST_F(StateDirTest, AFileOfAnotherKindIsNoStore) {
  for (const char* text : {"x", "GIF89a and more than sixteen bytes", "SQLite format 2."}) {
    std::ofstream(dir_ + "/results.db") << text;
    EXPECT_THAT(CheckStateFiles(dir_).ToString(), HasSubstr("move the file away"));
  }
}

// In a child, since root may do everything.
int CodeAsNobody(const std::string& dir) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(9);
    const absl::Status status = CheckStateFiles(dir);
    _exit(status.code() == absl::StatusCode::kFailedPrecondition &&
                  status.ToString().find("cannot be read and written") != std::string::npos
              ? 1
              : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST_F(StateDirTest, WhatThisUserCannotWriteIsNamed) {
  std::filesystem::permissions(dir_, std::filesystem::perms(0777));
  EXPECT_EQ(CodeAsNobody(dir_), 0);
  for (const std::string name : kStateFiles) {
    std::ofstream(dir_ + "/" + name);
    std::filesystem::permissions(dir_ + "/" + name, std::filesystem::perms(0));
    EXPECT_EQ(CodeAsNobody(dir_), name == "endpoint.json" ? 0 : 1) << name;
    std::filesystem::remove(dir_ + "/" + name);
  }
  std::filesystem::permissions(dir_, std::filesystem::perms(0555));
  EXPECT_EQ(CodeAsNobody(dir_), 1);
}

TEST_F(StateDirTest, FolderThatOthersMayEnterOrALinkIsNoPrivateFolder) {
  ASSERT_TRUE(EnsurePrivateDir(dir_ + "/own").ok());
  EXPECT_TRUE(EnsurePrivateDir(dir_ + "/own").ok());
  chmod((dir_ + "/own").c_str(), 0755);
  EXPECT_EQ(EnsurePrivateDir(dir_ + "/own").code(), absl::StatusCode::kPermissionDenied);
  chmod((dir_ + "/own").c_str(), 0700);
  ASSERT_EQ(symlink((dir_ + "/own").c_str(), (dir_ + "/link").c_str()), 0);
  EXPECT_EQ(EnsurePrivateDir(dir_ + "/link").code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(StateDirTest, SocketPathFitsHoweverLongTheFolders) {
  setenv("XDG_RUNTIME_DIR", (dir_ + "/" + std::string(120, 'x')).c_str(), 1);
  const auto path = LocalSocketPath("/" + std::string(500, 'y'));
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_LE(path->size(), kMaxUnixPathBytes);
  setenv("XDG_RUNTIME_DIR", dir_.c_str(), 1);
  const auto ours = LocalSocketPath("/state");
  EXPECT_THAT(*ours, HasSubstr(dir_ + "/assay-"));
  EXPECT_NE(*ours, *LocalSocketPath("/other"));
  unsetenv("XDG_RUNTIME_DIR");
}

TEST(BackoffTest, GrowsToItsCapWithJitterAndStartsAgainAfterReset) {
  using std::chrono::milliseconds;
  Backoff backoff(milliseconds(200), milliseconds(5000), 7);
  EXPECT_EQ(backoff.Next(), milliseconds(200));
  milliseconds most{0};
  for (int i = 0; i < 200; ++i) {
    const milliseconds wait = backoff.Next();
    EXPECT_GE(wait, milliseconds(200));
    EXPECT_LE(wait, milliseconds(5000));
    most = std::max(most, wait);
  }
  EXPECT_GT(most, milliseconds(3000));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), milliseconds(200));
}

}  // namespace
}  // namespace assay
