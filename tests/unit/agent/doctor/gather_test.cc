// Facts from a folder of fixtures; what has no file (adjtimex, getrlimit) is this machine's.
#include "agent/doctor/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "agent/doctor/checks.h"
#include "agent/telemetry/fake_nvml.h"
#include "tests/unit/agent/host/folder.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class GatherTest : public testing::Test {
 protected:
  GatherTest() {
    options_.node = "n1";
    options_.root = folder_.path();
    options_.stacks_dir = folder_.path() + "/stacks";
    options_.state_dir = folder_.path() + "/state";
    options_.lock_dir = folder_.path() + "/locks";
    std::filesystem::create_directories(options_.state_dir);
  }

  std::unique_ptr<FakeNvml> Captured(const std::string& name) {
    return FakeNvml::Load(ASSAY_FIXTURES "/nvml/" + name).value();
  }

  Folder folder_;
  GatherOptions options_;
};

TEST_F(GatherTest, AnEmptyMachineYieldsFactsAndNoFault) {
  const Facts facts = GatherFacts(options_, nullptr);
  EXPECT_EQ(facts.node, "n1");
  EXPECT_FALSE(facts.nvidia.wanted);
  ASSERT_EQ(facts.devices.size(), 1u);
  EXPECT_EQ(facts.devices[0].kind, "cpu");
  EXPECT_EQ(facts.cpu.listed, 0);
  EXPECT_FALSE(facts.shm_bytes);
  EXPECT_FALSE(Diagnose(facts).checks.empty());
}

TEST_F(GatherTest, ReadsTheVersionOfEitherKernelModule) {
  folder_.Write("proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6\nGCC x\n");
  EXPECT_EQ(GatherFacts(options_, nullptr).nvidia.module_version, "535.54.03");
  folder_.Write("proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release\n");
  EXPECT_EQ(GatherFacts(options_, nullptr).nvidia.module_version, "580.65.06");
}

TEST_F(GatherTest, CountsDisplayControllersOfNvidiaAlone) {
  folder_.Write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  folder_.Write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  folder_.Write("sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");  // its audio function
  folder_.Write("sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");
  folder_.Write("sys/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n");
  folder_.Write("sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
  EXPECT_EQ(GatherFacts(options_, nullptr).nvidia.pci_gpus, 1);
}

TEST_F(GatherTest, FindsDeviceNodesAndWhatIsMissing) {
  folder_.Write("dev/nvidiactl", "");
  folder_.Write("dev/nvidia3", "");
  folder_.Write("dev/nvidia-modeset", "");
  const auto nodes = GatherFacts(options_, nullptr).nvidia.nodes;
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_TRUE(nodes[0].exists);
  EXPECT_TRUE(nodes[0].usable);
  EXPECT_EQ(nodes[1].path, "/dev/nvidia-uvm");
  EXPECT_FALSE(nodes[1].exists);
  EXPECT_EQ(nodes[2].path, "/dev/nvidia3");
}

TEST_F(GatherTest, ACapturedNvmlIsNotThisMachines) {
  const auto nvml = Captured("rtx3090_x2.json");
  options_.environment = {{"CUDA_VISIBLE_DEVICES", ""}};
  const Facts facts = GatherFacts(options_, nvml.get());
  EXPECT_TRUE(facts.nvidia.captured);
  EXPECT_EQ(facts.devices.size(), 2u);
  EXPECT_EQ(facts.nvidia.use.size(), 2u);
  EXPECT_THAT(facts.device_warnings, IsEmpty());
}

TEST_F(GatherTest, ASickDriverOffersNoProcessorInItsPlace) {
  const auto nvml = Captured("driver_mismatch.json");
  const Facts facts = GatherFacts(options_, nvml.get());
  EXPECT_THAT(facts.devices, IsEmpty());
  EXPECT_FALSE(facts.nvidia.nvml.ok());
}

TEST_F(GatherTest, AsksEveryStackAndKeepsWhatItSays) {
  folder_.Write("stacks/a.json", R"({"name":"a","program":"../a.sh"})");
  folder_.Write("a.sh", "#!/bin/sh\necho '{\"runner\":\"r\",\"protocol\":1}'\n", true);
  folder_.Write("stacks/b.json", R"({"name":"b","program":"../none"})");
  folder_.Write("stacks/c.json", "{");
  const Facts facts = GatherFacts(options_, nullptr);
  ASSERT_EQ(facts.stacks.size(), 2u);
  EXPECT_EQ(facts.stacks[0].runner, "r");
  EXPECT_NE(facts.stacks[1].unusable_reason, "");
  EXPECT_EQ(facts.stack_programs.at("a"), folder_.path() + "/a.sh");
  ASSERT_EQ(facts.stack_warnings.size(), 1u);
  EXPECT_THAT(facts.stack_warnings[0], HasSubstr("c.json"));
}

TEST_F(GatherTest, BesideACellNothingIsStarted) {
  const std::string mark = folder_.path() + "/started";
  const std::string script = "#!/bin/sh\n: > " + mark + "\n";
  folder_.Write("stacks/a.json", R"({"name":"a","program":"../a.sh"})");
  folder_.Write("a.sh", script, true);
  folder_.Write("bin/mpirun", script, true);
  options_.environment = {{"PATH", folder_.path() + "/bin"}};
  options_.measuring = true;
  const Facts facts = GatherFacts(options_, nullptr);
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_THAT(facts.stacks, IsEmpty());
  EXPECT_EQ(facts.mpirun.path, folder_.path() + "/bin/mpirun");
}

TEST_F(GatherTest, FindsMpirunOnThePathAndItsFirstLine) {
  folder_.Write("one/mpirun", "not executable");
  folder_.Write("two/mpirun", "#!/bin/sh\nprintf 'mpirun (Open MPI) 4.1.4\\n\\nReport bugs\\n'\n",
                true);
  options_.environment = {{"PATH", folder_.path() + "/one::" + folder_.path() + "/two"}};
  EXPECT_EQ(GatherFacts(options_, nullptr).mpirun.version, "mpirun (Open MPI) 4.1.4");
  folder_.Write("two/mpirun", "#!/bin/sh\necho 'no library' >&2\nexit 3\n", true);
  EXPECT_THAT(GatherFacts(options_, nullptr).mpirun.error, HasSubstr("exit code 3: no library"));
}

// Control bytes of a file reach no terminal by way of a version.
TEST_F(GatherTest, AVersionWithControlBytesIsScrubbed) {
  folder_.Write("two/mpirun", "#!/bin/sh\nprintf 'v\\033[31m1\\n'\n", true);
  options_.environment = {{"PATH", folder_.path() + "/two"}};
  EXPECT_EQ(GatherFacts(options_, nullptr).mpirun.version.find('\x1b'), std::string::npos);
}

TEST_F(GatherTest, TheStateDirectoryIsLeftAsItWas) {
  const Facts facts = GatherFacts(options_, nullptr);
  EXPECT_TRUE(facts.state.exists);
  EXPECT_EQ(facts.state.error, "");
  EXPECT_TRUE(facts.state.free_bytes);
  EXPECT_TRUE(std::filesystem::is_empty(options_.state_dir));
}

TEST_F(GatherTest, AStateDirectoryThatIsNotThereIsNotMade) {
  options_.state_dir = folder_.path() + "/a/b/c";
  const Facts facts = GatherFacts(options_, nullptr);
  EXPECT_FALSE(facts.state.exists);
  EXPECT_EQ(facts.state.nearest, folder_.path());
  EXPECT_EQ(facts.state.error, "");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/a"));
}

TEST_F(GatherTest, AFileInTheWayOfTheStateDirectoryIsAnError) {
  options_.state_dir = folder_.Write("file", "x");
  EXPECT_THAT(GatherFacts(options_, nullptr).state.error, HasSubstr("is no folder"));
}

TEST_F(GatherTest, ALockFileThatIsALinkIsFound) {
  folder_.Write("locks/GPU-0.lock", "");
  EXPECT_EQ(GatherFacts(options_, nullptr).locks.error, "");
  std::filesystem::create_symlink("/etc/passwd", options_.lock_dir + "/GPU-1.lock");
  EXPECT_THAT(GatherFacts(options_, nullptr).locks.error, HasSubstr("GPU-1.lock"));
}

TEST_F(GatherTest, ReadsProcessorsQuotaAndGovernors) {
  folder_.Write("proc/cpuinfo", "processor : 0\nmodel name : X\nprocessor : 1\n");
  folder_.Write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0\n");
  folder_.Write("proc/self/cgroup", "0::/user/box\n");
  folder_.Write("sys/fs/cgroup/user/box/cpu.max", "max 100000\n");
  folder_.Write("sys/fs/cgroup/user/cpu.max", "150000 100000\n");
  folder_.Write("sys/fs/cgroup/user/box/cpu.stat",
                "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 70\n");
  folder_.Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  folder_.Write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n");
  const CpuFacts cpu = GatherFacts(options_, nullptr).cpu;
  EXPECT_EQ(cpu.listed, 2);
  EXPECT_EQ(cpu.allowed_count, 1);
  EXPECT_EQ(cpu.quota, 1.5);
  EXPECT_EQ(cpu.throttled_count, 4u);
  EXPECT_EQ(cpu.governors, (std::map<std::string, int>{{"performance", 1}, {"powersave", 1}}));
}

TEST_F(GatherTest, ReadsAQuotaOfTheFirstKindOfCgroup) {
  folder_.Write("proc/self/cgroup", "4:cpu,cpuacct:/docker/1\n");
  folder_.Write("sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "50000\n");
  folder_.Write("sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(GatherFacts(options_, nullptr).cpu.quota, 0.5);
  folder_.Write("sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(GatherFacts(options_, nullptr).cpu.quota);
}

TEST_F(GatherTest, TheLoopbackOfThisMachineCanBeBound) {
  const Facts facts = GatherFacts(options_, nullptr);
  for (const InterfaceFacts& interface : facts.interfaces) {
    if (!interface.loopback) continue;
    EXPECT_EQ(interface.bind_error, "") << interface.name;
  }
  EXPECT_EQ(facts.interfaces_error, "");
}

constexpr char kMounts[] =
    "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
    "30 22 0:40 / /home rw - nfs4 server:/home rw\n"
    "31 30 0:41 / /home/a\\040b rw - tmpfs tmpfs rw\n"
    "32 22 0:42 / /mnt rw - ext4 /dev/sdb rw\n"
    "33 22 0:43 / /mnt rw - xfs /dev/sdc rw\n"
    "broken\n";

TEST(FileSystemType, IsThatOfTheNearestMount) {
  EXPECT_EQ(FileSystemType(kMounts, "/var/lib"), "ext4");
  EXPECT_EQ(FileSystemType(kMounts, "/home/ada/assay"), "nfs4");
  EXPECT_EQ(FileSystemType(kMounts, "/home"), "nfs4");
  EXPECT_EQ(FileSystemType(kMounts, "/homes"), "ext4");
}

TEST(FileSystemType, ReadsBlanksAndTheLaterOfTwoMountsOnOnePoint) {
  EXPECT_EQ(FileSystemType(kMounts, "/home/a b/c"), "tmpfs");
  EXPECT_EQ(FileSystemType(kMounts, "/mnt/x"), "xfs");
}

TEST(FileSystemType, IsEmptyWhereNothingIsKnown) { EXPECT_EQ(FileSystemType("", "/x"), ""); }

TEST(CountOfList, CountsRangesAndRefusesTheRest) {
  EXPECT_EQ(CountOfList("0-3,8"), 5);
  EXPECT_EQ(CountOfList("7"), 1);
  EXPECT_EQ(CountOfList(""), 0);
  EXPECT_EQ(CountOfList("3-1"), 0);
  EXPECT_EQ(CountOfList("0-99999999"), 0);
  EXPECT_EQ(CountOfList("a"), 0);
}

}  // namespace
}  // namespace assay
