#include "agent/host/proc_files.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/host/folder.h"

namespace assay {
namespace {

TEST(ProcFiles, CpuModelAndCount) {
  Folder proc;
  proc.Write("cpuinfo",
             "processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core Processor\n\nprocessor\t: 1\n"
             "model name\t: AMD EPYC 7763 64-Core Processor\n");
  EXPECT_EQ(CpuModel(proc.path()), "AMD EPYC 7763 64-Core Processor");
  EXPECT_EQ(CpuCount(proc.path()), 2);
}

TEST(ProcFiles, AnArmProcessorHasPartNumbers) {
  Folder proc;
  proc.Write("cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
  EXPECT_EQ(CpuModel(proc.path()), "CPU 0x41 0xd4f");
}

TEST(ProcFiles, MemoryIsMemTotalWithoutALimit) {
  Folder proc, sys;
  proc.Write("meminfo", "MemFree: 1 kB\nMemTotal:       65536 kB\n");
  proc.Write("self/cgroup", "0::/user.slice\n");
  sys.Write("fs/cgroup/user.slice/memory.max", "max\n");
  EXPECT_EQ(MachineMemoryBytes(proc.path(), sys.path()), uint64_t{65536} << 10);
}

TEST(ProcFiles, TheLeastCgroupLimitOfAllAncestorsCounts) {
  Folder proc, sys;
  proc.Write("meminfo", "MemTotal:       65536 kB\n");
  proc.Write("self/cgroup", "0::/a/b\n");
  sys.Write("fs/cgroup/a/memory.max", "1000000\n");
  sys.Write("fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(MachineMemoryBytes(proc.path(), sys.path()), 1000000u);
}

TEST(ProcFiles, VersionOneCgroupsSayNoLimitWithAHugeNumber) {
  Folder proc, sys;
  proc.Write("meminfo", "MemTotal:       65536 kB\n");
  proc.Write("self/cgroup", "9:memory:/job\n0::/\n");
  sys.Write("fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(MachineMemoryBytes(proc.path(), sys.path()), uint64_t{65536} << 10);
  sys.Write("fs/cgroup/memory/memory.limit_in_bytes", "4096\n");
  EXPECT_EQ(MachineMemoryBytes(proc.path(), sys.path()), 4096u);
}

TEST(ProcFiles, NumaNodeOfNvmlsSpelling) {
  Folder sys;
  sys.Write("bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
  sys.Write("bus/pci/devices/0000:41:00.0/numa_node", "-1\n");
  sys.Write("bus/pci/devices/00010000:3b:00.0/numa_node", "3\n");
  EXPECT_EQ(NumaNode(sys.path(), "00000000:3B:00.0"), 1);
  EXPECT_EQ(NumaNode(sys.path(), "00000000:41:00.0"), -1);
  EXPECT_EQ(NumaNode(sys.path(), "00010000:3B:00.0"), 3);
  EXPECT_EQ(NumaNode(sys.path(), "../../../x"), -1);
  EXPECT_EQ(NumaNode(sys.path(), ""), -1);
}

TEST(ProcFiles, OsNameIsPrettyName) {
  Folder etc;
  etc.Write("os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  EXPECT_EQ(OsName(etc.path()), "Debian GNU/Linux 12 (bookworm)");
}

TEST(ProcFiles, NothingThereIsNotKnown) {
  EXPECT_EQ(CpuModel("/none"), "");
  EXPECT_EQ(CpuCount("/none"), 0);
  EXPECT_EQ(MachineMemoryBytes("/none", "/none"), 0u);
  EXPECT_EQ(MachineId("/none"), "");
  EXPECT_EQ(BootId("/none"), "");
  EXPECT_EQ(OsName("/none"), "");
  EXPECT_FALSE(HasNvidiaDriver("/none"));
  EXPECT_FALSE(FileSystemBytes("/none"));
}

}  // namespace
}  // namespace assay
