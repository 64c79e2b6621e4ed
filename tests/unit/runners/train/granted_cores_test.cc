#include "runners/train/device/granted_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace assay::train {
namespace {

class GrantedCoresTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "granted-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void File(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::string root_;
};

TEST_F(GrantedCoresTest, NothingToReadIsNoQuota) { EXPECT_EQ(QuotaCores(root_), 0); }

TEST_F(GrantedCoresTest, LeastQuotaOfTheGroupAndThoseAboveItHolds) {
  File("/proc/self/cgroup", "0::/a/b\n");
  File("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(QuotaCores(root_), 0);
  File("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  EXPECT_EQ(QuotaCores(root_), 3);
  File("/sys/fs/cgroup/a/b/cpu.max", "20000 100000\n");
  EXPECT_EQ(QuotaCores(root_), 1);
}

TEST_F(GrantedCoresTest, PathOfTheHostInAContainerFallsBackToTheMount) {
  File("/proc/self/cgroup", "0::/kubepods.slice/pod/../..\n");
  File("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(QuotaCores(root_), 4);
}

TEST_F(GrantedCoresTest, Version1IsRead) {
  File("/proc/self/cgroup", "11:cpuset:/x\n4:cpu,cpuacct:/docker/1\n");
  File("/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "-1\n");
  File("/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(QuotaCores(root_), 0);
  File("/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(QuotaCores(root_), 2);
}

TEST_F(GrantedCoresTest, GarbageIsNoQuota) {
  File("/proc/self/cgroup", "0\n::\n0::/\n");
  for (const char* text : {"", "max", "-5 100000", "1 0", "nan nan", "1e300 1"}) {
    File("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(QuotaCores(root_), 0) << text;
  }
}

TEST(GrantedCores, OfThisProcessAreAtMostItsAffinity) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  EXPECT_GE(GrantedCores(), 1);
  EXPECT_LE(GrantedCores(), CPU_COUNT(&set));
}

}  // namespace
}  // namespace assay::train
