// Locks, endpoints, environments and files of a gang, against a temporary folder and loopback.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "agent/cell/cgroup_memory.h"
#include "agent/cell/device_lock.h"
#include "agent/cell/endpoint.h"
#include "agent/cell/gang_files.h"
#include "agent/cell/runner_environment.h"
#include "agent/process/process_table.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

class NodeResourcesTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + "assay_node_" + std::to_string(::getpid());
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string dir_;
};

// Case 10: never two attempts on one GPU.
TEST_F(NodeResourcesTest, Case10ADeviceIsLockedOnceUntilLetGo) {
  const std::string locks = dir_ + "/locks";
  {
    const auto first = DeviceLock::Acquire(locks, "GPU-1");
    ASSERT_TRUE(first.ok()) << first.status();
    const auto second = DeviceLock::Acquire(locks, "GPU-1");
    EXPECT_EQ(second.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(second.status().message()), testing::HasSubstr("GPU-1"));
    EXPECT_TRUE(DeviceLock::Acquire(locks, "GPU-2").ok());
  }
  EXPECT_TRUE(DeviceLock::Acquire(locks, "GPU-1").ok());
}

TEST_F(NodeResourcesTest, ADeviceLockIsForAllUsersAndFollowsNoLink) {
  const std::string locks = dir_ + "/locks";
  ASSERT_TRUE(DeviceLock::Acquire(locks, "GPU-1").ok());
  EXPECT_EQ(fs::status(locks).permissions(), fs::perms(01777));
  EXPECT_EQ(fs::status(locks + "/GPU-1.lock").permissions(), fs::perms(0666));
  fs::create_symlink(dir_ + "/elsewhere", locks + "/GPU-2.lock");
  EXPECT_FALSE(DeviceLock::Acquire(locks, "GPU-2").ok());
  EXPECT_FALSE(fs::exists(dir_ + "/elsewhere"));
}

// Else a cell would wait without end for a "busy" GPU whose lock nobody holds.
TEST_F(NodeResourcesTest, ALockThatCannotBeMadeIsNotTakenForOneThatIsHeld) {
  std::ofstream(dir_ + "/file") << "not a folder";
  const auto lock = DeviceLock::Acquire(dir_ + "/file/locks", "GPU-1");
  EXPECT_EQ(lock.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(lock.status().message()), testing::HasSubstr(dir_ + "/file/locks"));
}

TEST_F(NodeResourcesTest, AUuidThatIsAPathIsRefused) {
  EXPECT_EQ(DeviceLock::Acquire(dir_, "../x").status().code(), absl::StatusCode::kInvalidArgument);
}

// Case 23: the kernel chooses, and the socket is held from then on.
TEST_F(NodeResourcesTest, Case23EachEndpointGetsAFreePortThatIsAlreadyListening) {
  const auto loop = EventLoop::Create().value();
  const auto first = BindEndpoint("127.0.0.1");
  const auto second = BindEndpoint("127.0.0.1");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->address, second->address);
  std::optional<absl::Status> seen;
  const EndpointProbe probe(*loop, first->address, std::chrono::seconds(5),
                            [&](const absl::Status& status) { seen = status; });
  ASSERT_TRUE(loop->RunUntil([&] { return seen.has_value(); },
                             BootClock::now() + std::chrono::seconds(10)));
  EXPECT_TRUE(seen->ok()) << *seen;
}

TEST_F(NodeResourcesTest, AProbeNamesAnEndpointThatNobodyHolds) {
  const auto loop = EventLoop::Create().value();
  std::string address;
  {
    address = BindEndpoint("127.0.0.1").value().address;
  }
  for (const std::string& to : {address, std::string("nonsense"), std::string("not.numeric:1")}) {
    std::optional<absl::Status> seen;
    const EndpointProbe probe(*loop, to, std::chrono::seconds(5),
                              [&](const absl::Status& status) { seen = status; });
    EXPECT_FALSE(seen.has_value());
    ASSERT_TRUE(loop->RunUntil([&] { return seen.has_value(); },
                               BootClock::now() + std::chrono::seconds(10)));
    EXPECT_FALSE(seen->ok()) << to;
  }
}

// Cases 7 and 11.
TEST_F(NodeResourcesTest, Case7And11ARankSeesOneGpuByUuidInPciOrder) {
  Device gpu;
  gpu.uuid = "GPU-3";
  const Environment environment = RunnerEnvironment(
      {{"CUDA_VISIBLE_DEVICES", "3"}, {"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}}, {}, gpu);
  EXPECT_THAT(environment, Contains(Pair("CUDA_VISIBLE_DEVICES", "GPU-3")));
  EXPECT_THAT(environment, Contains(Pair("CUDA_DEVICE_ORDER", "PCI_BUS_ID")));
}

TEST_F(NodeResourcesTest, ACellOnAProcessorSeesNoGpu) {
  Device cpu;
  cpu.uuid = "CPU-1";
  cpu.kind = "cpu";
  EXPECT_THAT(RunnerEnvironment({}, {}, cpu), Contains(Pair("CUDA_VISIBLE_DEVICES", "")));
}

TEST_F(NodeResourcesTest, OnlyAllowedNamesReachARunnerAndTheStackWins) {
  const Environment environment = RunnerEnvironment({{"PATH", "/bin"},
                                                     {"NCCL_P2P_DISABLE", "1"},
                                                     {"AWS_SECRET_ACCESS_KEY", "x"},
                                                     {"LD_PRELOAD", "x"},
                                                     {"LD_LIBRARY_PATH", "/agent"}},
                                                    {{"LD_LIBRARY_PATH", "/stack"}}, Device{});
  EXPECT_THAT(environment, Contains(Pair("PATH", "/bin")));
  EXPECT_THAT(environment, Contains(Pair("NCCL_P2P_DISABLE", "1")));
  EXPECT_THAT(environment, Contains(Pair("LD_LIBRARY_PATH", "/stack")));
  EXPECT_THAT(environment, Not(Contains(Key("AWS_SECRET_ACCESS_KEY"))));
  EXPECT_THAT(environment, Not(Contains(Key("LD_PRELOAD"))));
}

TEST_F(NodeResourcesTest, ACellFileIsPrivateAndReadsBack) {
  GangFiles files(dir_);
  ASSERT_TRUE(files.Open().ok());
  CellFile cell;
  cell.attempt = "01A";
  cell.rank = 2;
  cell.card = "bad \xff byte";
  const auto path = files.WriteCell(cell);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(fs::status(*path).permissions(), fs::perms(0600));
  std::ifstream in(*path);
  EXPECT_EQ(CellFileFromJson(nlohmann::json::parse(in)).rank, 2);
}

TEST_F(NodeResourcesTest, OldFilesGoWhileTheAgentLives) {
  if (ASSAY_SANITIZED_THREAD) GTEST_SKIP() << "long there, and one thread";
  GangFiles files(dir_);
  ASSERT_TRUE(files.Open().ok());
  CellFile cell;
  for (size_t i = 0; i < kMostFiles + kMostFiles / 2; ++i) {
    cell.attempt = fmt::format("01A{:06}", i);
    const auto path = files.WriteCell(cell);
    ASSERT_TRUE(path.ok()) << path.status();
    std::ofstream(files.LogPath(cell.attempt, 0)) << "said";
  }
  for (const char* folder : {"/cells", "/logs"}) {
    const auto kept = static_cast<size_t>(
        std::distance(fs::directory_iterator(dir_ + folder), fs::directory_iterator()));
    EXPECT_LE(kept, kMostFiles + kMostFiles / 8 + 1) << folder;
    EXPECT_GE(kept, kMostFiles) << folder;
  }
  EXPECT_TRUE(fs::exists(files.LogPath(cell.attempt, 0)));
  EXPECT_FALSE(fs::exists(files.LogPath("01A000000", 0)));
}

TEST_F(NodeResourcesTest, ABrokenRecordOfAFormerGangKillsNobody) {
  GangFiles files(dir_);
  ASSERT_TRUE(files.Open().ok());
  std::ofstream(dir_ + "/gangs/01A.json") << "{\"pids\":";
  std::ofstream(dir_ + "/gangs/01B.json")
      << "{\"boot_id\":\"another boot\",\"pids\":[[" << ::getppid() << ",1]]}";
  EXPECT_EQ(files.KillFormerGangs(std::chrono::milliseconds(100)).killed, 0u);
  EXPECT_TRUE(fs::is_empty(dir_ + "/gangs"));
}

// A process in a session of its own, with that environment.
pid_t StartSleeper(const char* variable) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setsid();
    const char* const argv[] = {"sleep", "100", nullptr};
    const char* const envp[] = {variable, nullptr};
    ::execve("/bin/sleep", const_cast<char* const*>(argv), const_cast<char* const*>(envp));
    ::_exit(127);
  }
  while (!EnvironmentOf(pid, "ASSAY_ATTEMPT") && !EnvironmentOf(pid, "NO_MARK")) ::usleep(1000);
  return pid;
}

constexpr std::chrono::seconds kEnough{10};

TEST_F(NodeResourcesTest, AnAgentVouchesForAFolderThatWasUsedInThisBootOnly) {
  GangFiles files(dir_);
  ASSERT_TRUE(files.Open().ok());
  EXPECT_FALSE(files.KillFormerGangs(kEnough).all_ended);
  EXPECT_TRUE(files.KillFormerGangs(kEnough).all_ended);
  std::ofstream(dir_ + "/kernel") << "another boot pid:[1]";
  EXPECT_FALSE(files.KillFormerGangs(kEnough).all_ended);
}

TEST_F(NodeResourcesTest, AProcessThatWasNotSeenEndedIsNotVouchedForAndLookedForAgain) {
  GangFiles files(dir_);
  ASSERT_TRUE(files.Open().ok());
  files.KillFormerGangs(kEnough);
  const pid_t pid = StartSleeper("ASSAY_ATTEMPT=01A/0");
  ASSERT_TRUE(files.RecordPids("01A", {0}, {}).ok());
  const FormerGangs none_in_time = files.KillFormerGangs(std::chrono::milliseconds(0));
  EXPECT_FALSE(none_in_time.all_ended);
  const FormerGangs former = files.KillFormerGangs(kEnough);
  EXPECT_EQ(former.killed, 1u);
  EXPECT_TRUE(former.all_ended);
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_TRUE(fs::is_empty(dir_ + "/gangs"));
}

// Two agents of one machine may have a rank of one gang each.
TEST_F(NodeResourcesTest, ARankOfAnotherAgentIsLeftAlone) {
  GangFiles files(dir_);
  ASSERT_TRUE(files.Open().ok());
  const pid_t mine = StartSleeper("ASSAY_ATTEMPT=01A/1");
  const pid_t other = StartSleeper("ASSAY_ATTEMPT=01A/0");
  const pid_t longer = StartSleeper("ASSAY_ATTEMPT=01A/11");
  ASSERT_TRUE(files.RecordPids("01A", {1}, {}).ok());
  EXPECT_EQ(files.KillFormerGangs(kEnough).killed, 1u);
  EXPECT_EQ(::waitpid(mine, nullptr, 0), mine);
  for (const pid_t pid : {other, longer}) {
    EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0);
    EXPECT_EQ(::kill(pid, SIGKILL), 0);
    EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  }
}

TEST_F(NodeResourcesTest, AnUnmarkedProcessInTheSessionOfADeadLeaderIsNeitherKilledNorVouchedFor) {
  GangFiles files(dir_);
  ASSERT_TRUE(files.Open().ok());
  files.KillFormerGangs(kEnough);
  // The leader of the session that this process is in, as if it had ended: another start time.
  const pid_t pid = StartSleeper("NO_MARK=1");
  const std::string kernel = [&] {
    std::ifstream in(dir_ + "/kernel");
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  std::ofstream(dir_ + "/gangs/01A.json")
      << nlohmann::json{{"boot_id", kernel}, {"pids", {{pid, 1}}}}.dump();
  const FormerGangs former = files.KillFormerGangs(std::chrono::milliseconds(100));
  EXPECT_EQ(former.killed, 0u);
  EXPECT_FALSE(former.all_ended);
  EXPECT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_TRUE(files.KillFormerGangs(std::chrono::milliseconds(100)).all_ended);
}

TEST_F(NodeResourcesTest, ABrokenRecordOfThisBootIsNotVouchedFor) {
  GangFiles files(dir_);
  ASSERT_TRUE(files.Open().ok());
  files.KillFormerGangs(kEnough);
  std::ofstream(dir_ + "/gangs/01A.json") << "{\"pids\":";
  EXPECT_FALSE(files.KillFormerGangs(std::chrono::milliseconds(100)).all_ended);
  EXPECT_FALSE(files.KillFormerGangs(std::chrono::milliseconds(100)).all_ended);
}

TEST_F(NodeResourcesTest, ReadsTheOomKillsOfItsCgroup) {
  fs::create_directories(dir_ + "/proc/self");
  fs::create_directories(dir_ + "/sys/fs/cgroup/a/b");
  std::ofstream(dir_ + "/proc/self/cgroup") << "1:name=x:/y\n0::/a/b\n";
  std::ofstream(dir_ + "/sys/fs/cgroup/a/b/memory.events") << "low 0\noom 4\noom_kill 3\n";
  EXPECT_EQ(OomKillCount(dir_ + "/proc", dir_ + "/sys"), 3u);
  EXPECT_EQ(OomKillCount(dir_ + "/none", dir_ + "/none"), 0u);
}

}  // namespace
}  // namespace assay
