#include "agent/host/rank_cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/host/folder.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CpuList, ReadsRangesAndWritesThemBack) {
  EXPECT_THAT(CpusOfList("0-2,8,10-11\n"), ElementsAre(0, 1, 2, 8, 10, 11));
  EXPECT_EQ(ListOfCpus({0, 1, 2, 8, 10, 11}), "0-2,8,10-11");
  EXPECT_EQ(ListOfCpus({}), "");
}

TEST(CpuList, WhatIsNoListIsEmpty) {
  for (const char* text : {"", "\n", "a", "3-1", "0-", "0,", "-1", "0-9999999", "0 1"}) {
    EXPECT_THAT(CpusOfList(text), IsEmpty()) << text;
  }
}

TEST(CpusOfNode, AreThoseOfTheNodeThatAreGranted) {
  Folder sys;
  sys.Write("devices/system/node/node1/cpulist", "4-7,12-15\n");
  EXPECT_THAT(CpusOfNode(sys.path(), 1, {0, 5, 6, 12}), ElementsAre(5, 6, 12));
  EXPECT_THAT(CpusOfNode(sys.path(), 1, {0, 1}), IsEmpty());
  EXPECT_THAT(CpusOfNode(sys.path(), 0, {0, 1}), IsEmpty());   // not there
  EXPECT_THAT(CpusOfNode(sys.path(), -1, {0, 1}), IsEmpty());  // not known
}

TEST(AffinityOf, ThisProcessHasProcessorsAndOneThatIsGoneHasNone) {
  EXPECT_FALSE(AffinityOf(0).empty());
  EXPECT_THAT(AffinityOf(0x3fffffff), IsEmpty());
}

Record Filled(const RankPlacement& placement, const std::string& sys_root) {
  Record record;
  FillPlacement(placement, sys_root, record);
  return record;
}

TEST(FillPlacement, ARankThatGotItsNodeIsPinned) {
  Folder sys;
  sys.Write("devices/system/cpu/cpu4/cpufreq/scaling_governor", "performance\n");
  sys.Write("devices/system/cpu/cpu5/cpufreq/scaling_governor", "performance\n");
  const Record record = Filled({1, true, {4, 5}, {4, 5}}, sys.path());
  EXPECT_EQ(record.Integer(Field::kNumaNode), 1);
  EXPECT_EQ(record.Flag(Field::kNumaPinned), true);
  EXPECT_EQ(record.Text(Field::kRankCpus), "4-5");
  EXPECT_EQ(record.Text(Field::kCpuGovernor), "performance");
}

TEST(FillPlacement, OneThatDidNotGetItIsNotPinned) {
  EXPECT_EQ(Filled({1, true, {4, 5}, {0, 1, 2, 3, 4, 5}}, "/none").Flag(Field::kNumaPinned), false);
  EXPECT_EQ(Filled({1, true, {}, {0, 1}}, "/none").Flag(Field::kNumaPinned), false);
}

TEST(FillPlacement, WhatIsNotKnownIsNotSaid) {
  Folder sys;
  sys.Write("devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  sys.Write("devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n");
  const Record cpu = Filled({-1, false, {}, {0, 1}}, sys.path());
  EXPECT_FALSE(cpu.Has(Field::kNumaPinned));
  EXPECT_FALSE(cpu.Has(Field::kNumaNode));
  EXPECT_EQ(cpu.Text(Field::kCpuGovernor), "performance, powersave");
  const Record gpu = Filled({-1, true, {}, {}}, "/none");
  EXPECT_FALSE(gpu.Has(Field::kNumaNode));
  EXPECT_FALSE(gpu.Has(Field::kRankCpus));
  EXPECT_FALSE(gpu.Has(Field::kCpuGovernor));
  EXPECT_EQ(gpu.Flag(Field::kNumaPinned), false);
}

}  // namespace
}  // namespace assay
