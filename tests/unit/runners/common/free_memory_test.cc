#include "runners/common/free_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;

class FreeMemory : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/free_memory_XXXXXX";
    root_ = mkdtemp(name);
    Write("/proc/meminfo", "MemTotal: 100 kB\nMemFree: 10 kB\nMemAvailable: 80 kB\nCached: 5 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(FreeMemory, OfTheMachineWithoutAGroup) { EXPECT_EQ(FreeMemoryBytes(root_), 80 * 1024); }

TEST_F(FreeMemory, WhatTheGroupLeavesWhereThatIsLess) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("/sys/fs/cgroup/a/b/memory.current", "1000\n");
  EXPECT_EQ(FreeMemoryBytes(root_), 80 * 1024);
  Write("/sys/fs/cgroup/a/memory.max", "50000\n");
  Write("/sys/fs/cgroup/a/memory.current", "20000\n");
  EXPECT_EQ(FreeMemoryBytes(root_), 30000);
}

TEST_F(FreeMemory, TheMountsOwnGroupInAContainer) {
  Write("/proc/self/cgroup", "0::/of/the/host\n");
  Write("/sys/fs/cgroup/memory.max", "5000\n");
  Write("/sys/fs/cgroup/memory.current", "6000\n");
  EXPECT_EQ(FreeMemoryBytes(root_), 0);
}

TEST_F(FreeMemory, IsNotKnownWhereNothingCanBeRead) {
  fs::remove_all(root_ + "/proc");
  EXPECT_FALSE(FreeMemoryBytes(root_).has_value());
}

}  // namespace
}  // namespace assay
