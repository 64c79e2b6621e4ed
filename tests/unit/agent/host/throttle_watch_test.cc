#include "agent/host/throttle_watch.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/host/folder.h"

namespace assay {
namespace {

Record Filled(const ThrottleWatch& watch) {
  Record record;
  watch.Fill(record);
  return record;
}

TEST(ThrottleWatch, TellsWhatTheGroupsOfVersionTwoTookInTheWindow) {
  Folder proc, sys;
  proc.Write("self/cgroup", "0::/box/run\n");
  sys.Write("fs/cgroup/box/cpu.max", "150000 100000\n");
  const auto stat = [&](const char* folder, const char* text) {
    sys.Write(std::string("fs/cgroup/") + folder + "/cpu.stat", text);
  };
  stat("box/run", "usage_usec 1\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
  stat("box", "usage_usec 1\nnr_periods 90\nnr_throttled 40\nthrottled_usec 7000000\n");
  ThrottleWatch watch(proc.path(), sys.path());
  watch.Begin();
  stat("box", "usage_usec 1\nnr_periods 99\nnr_throttled 43\nthrottled_usec 7250000\n");
  watch.End();
  stat("box", "usage_usec 1\nnr_periods 199\nnr_throttled 99\nthrottled_usec 9000000\n");
  watch.End();  // the first counts
  const Record record = Filled(watch);
  EXPECT_EQ(record.Number(Field::kCpuQuotaCores), 1.5);
  EXPECT_EQ(record.Integer(Field::kCpuThrottledPeriods), 3);
  EXPECT_NEAR(*record.Number(Field::kCpuThrottledSeconds), 0.25, 1e-9);
}

TEST(ThrottleWatch, ReadsVersionOne) {
  Folder proc, sys;
  proc.Write("self/cgroup", "4:cpu,cpuacct:/job\n");
  sys.Write("fs/cgroup/cpu/job/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 500\n");
  ThrottleWatch watch(proc.path(), sys.path());
  watch.Begin();
  sys.Write("fs/cgroup/cpu/job/cpu.stat",
            "nr_periods 9\nnr_throttled 6\nthrottled_time 1000000500\n");
  watch.End();
  EXPECT_EQ(Filled(watch).Integer(Field::kCpuThrottledPeriods), 2);
  EXPECT_NEAR(*Filled(watch).Number(Field::kCpuThrottledSeconds), 1, 1e-9);
}

TEST(ThrottleWatch, AKernelThatTellsNothingGivesNoZeros) {
  ThrottleWatch watch("/none", "/none");
  watch.Begin();
  watch.End();
  EXPECT_EQ(Filled(watch), Record());
}

TEST(ThrottleWatch, WithoutAWindowOrWithCountsThatFellNothingIsKnown) {
  Folder proc, sys;
  proc.Write("self/cgroup", "0::/\n");
  sys.Write("fs/cgroup/cpu.stat", "nr_throttled 4\nthrottled_usec 900\n");
  ThrottleWatch no_window(proc.path(), sys.path());
  no_window.End();
  EXPECT_EQ(Filled(no_window), Record());
  ThrottleWatch fell(proc.path(), sys.path());
  fell.Begin();
  sys.Write("fs/cgroup/cpu.stat", "nr_throttled 1\nthrottled_usec 9\n");
  fell.End();
  EXPECT_FALSE(Filled(fell).Has(Field::kCpuThrottledPeriods));
}

}  // namespace
}  // namespace assay
