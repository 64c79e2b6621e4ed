#include "agent/telemetry/exclusivity.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace assay {
namespace {

using Pids = std::vector<int64_t>;

Ancestry Ours(int64_t) { return Ancestry::kOurs; }
Ancestry Foreign(int64_t) { return Ancestry::kForeign; }
Ancestry Unseen(int64_t) { return Ancestry::kUnseen; }

TEST(Exclusivity, VerifiedWhereTheListShowsOnlyOurs) {
  Exclusivity e;
  e.Before(4 << 20, Pids{});
  e.During(Pids{10, 11}, Ours);
  EXPECT_EQ(e.Word(), "verified");
}

TEST(Exclusivity, InferredWhereTheListCannotBeRead) {
  Exclusivity e;
  e.Before(4 << 20, absl::UnimplementedError("vGPU"));
  e.During(absl::UnimplementedError("vGPU"), Ours);
  EXPECT_EQ(e.Word(), "inferred");
}

TEST(Exclusivity, InferredInAContainerWhoseListIsEmptyOrInHostNumbers) {
  Exclusivity empty, foreign_numbers;
  empty.Before(0, Pids{});
  empty.During(Pids{}, Ours);
  foreign_numbers.Before(0, Pids{});
  foreign_numbers.During(Pids{123456}, Unseen);
  EXPECT_EQ(empty.Word(), "inferred");
  EXPECT_EQ(foreign_numbers.Word(), "inferred");
}

TEST(Exclusivity, UnknownWhereMemoryWasInUseBefore) {
  Exclusivity e;
  e.Before(uint64_t{3} << 30, Pids{});
  e.During(Pids{10}, Ours);
  EXPECT_EQ(e.Word(), "unknown");
}

TEST(Exclusivity, UnknownWhereSomebodyElseWasSeen) {
  Exclusivity before, during;
  before.Before(0, Pids{99});
  during.Before(0, Pids{});
  during.During(Pids{99}, Foreign);
  during.During(Pids{10}, Ours);
  EXPECT_EQ(before.Word(), "unknown");
  EXPECT_EQ(during.Word(), "unknown");
}

TEST(Exclusivity, ProcessesOfOthersAreKeptByNumber) {
  Exclusivity e;
  e.Before(0, Pids{99});
  e.During(Pids{10, 98},
           [](int64_t pid) { return pid == 10 ? Ancestry::kOurs : Ancestry::kForeign; });
  ASSERT_TRUE(e.foreign());
  EXPECT_EQ(*e.foreign(), (std::set<int64_t>{98, 99}));
  Exclusivity alone, unread;
  alone.Before(0, Pids{});
  unread.Before(0, absl::UnimplementedError("vGPU"));
  EXPECT_TRUE(alone.foreign()->empty());
  EXPECT_FALSE(unread.foreign());
}

// In a container the list is in the host's numbers: one of them is ours, two are not.
TEST(Exclusivity, UnknownWhereMoreProcessesAreHiddenThanWeHave) {
  Exclusivity hidden, beside;
  hidden.Before(0, Pids{});
  hidden.During(Pids{123456, 123457}, Unseen);
  EXPECT_EQ(hidden.Word(), "unknown");
  beside.Before(0, Pids{});
  beside.During(Pids{10, 123457},
                [](int64_t pid) { return pid == 10 ? Ancestry::kOurs : Ancestry::kUnseen; });
  EXPECT_EQ(beside.Word(), "unknown");
}

TEST(Exclusivity, UnknownWithoutAnyReading) { EXPECT_EQ(Exclusivity().Word(), "unknown"); }

TEST(Exclusivity, OneBusyDeviceOfTwoIsNotExclusive) {
  Exclusivity e;
  e.Before(0, Pids{});
  e.Before(uint64_t{1} << 30, Pids{});
  EXPECT_EQ(e.Word(), "unknown");
}

class ProcFolder : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Process(int pid, int parent, const std::string& name) {
    const auto dir = root_ / std::to_string(pid);
    std::filesystem::create_directories(dir);
    std::ofstream(dir / "stat") << pid << " (" << name << ") S " << parent << " 1 1";
  }
  const std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("proc_" + std::to_string(getpid()));
};

TEST_F(ProcFolder, AncestryFollowsParentsWhateverANameHolds) {
  Process(10, 5, "agent");
  Process(20, 10, "evil) S 1 (x");
  Process(30, 20, "rank");
  Process(40, 5, "stranger");
  EXPECT_EQ(AncestryOf(root_, 30, 10), Ancestry::kOurs);
  EXPECT_EQ(AncestryOf(root_, 10, 10), Ancestry::kOurs);
  EXPECT_EQ(AncestryOf(root_, 40, 10), Ancestry::kForeign);
  EXPECT_EQ(AncestryOf(root_, 77, 10), Ancestry::kUnseen);
}

}  // namespace
}  // namespace assay
