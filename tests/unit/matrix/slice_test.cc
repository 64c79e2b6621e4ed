#include "common/matrix/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "common/ids/ids.h"
#include "common/status/status.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST(SliceTest, IsPartIOfN) {
  const auto slice = ParseSlice("2/4", "job-7");
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_EQ(slice->index, 2u);
  EXPECT_EQ(slice->count, 4u);
  EXPECT_EQ(slice->id, "job-7");
  EXPECT_EQ(slice->ToString(), "2/4");
  EXPECT_EQ(ParseSlice("1/1", "")->ToString(), "1/1");
}

TEST(SliceTest, OfAnotherFormIsRefused) {
  for (const char* text : {"", "/", "2", "2/", "/4", "a/4", "2/b", "2/4/6", " 2/4", "2/4 ", "+2/4",
                           "-1/4", "1/-4", "2 / 4", "99999999999/99999999999"}) {
    EXPECT_THAT(Message(ParseSlice(text, "").status()), HasSubstr("a slice is I/N")) << text;
  }
  EXPECT_THAT(Message(ParseSlice("0/4", "").status()), HasSubstr("a slice is I/N"));
  EXPECT_THAT(Message(ParseSlice("5/4", "").status()), HasSubstr("there is no slice 5 of 4"));
  EXPECT_THAT(Message(ParseSlice("1/10001", "").status()), HasSubstr("at most 10000"));
  for (const std::string& id : {std::string("a b"), std::string("a/b"), std::string(65, 'a')}) {
    EXPECT_THAT(Message(ParseSlice("1/2", id).status()), HasSubstr("a slice id is")) << id;
  }
}

TEST(SliceTest, NumbersOfAPeerAreChecked) {
  EXPECT_TRUE(CheckSlice(Slice{}).ok());
  EXPECT_FALSE(CheckSlice(Slice{1, 0, ""}).ok());
  EXPECT_FALSE(CheckSlice(Slice{0, 4, ""}).ok());
  EXPECT_FALSE(CheckSlice(Slice{0, 0, "id"}).ok());
}

TEST(SliceTest, SlicesShareSpecsAndNumbersWithoutOverlapOrGap) {
  for (const uint32_t count : {1u, 2u, 3u, 7u}) {
    std::multiset<uint32_t> specs;
    std::multiset<uint64_t> numbers;
    for (uint32_t index = 1; index <= count; ++index) {
      const Slice slice{index, count, ""};
      uint64_t last = 0;
      for (uint32_t spec = 0; spec < 21; ++spec) {
        if (!slice.Has(spec)) continue;
        specs.insert(spec);
        last = slice.NextCell(last);
        numbers.insert(last);
      }
    }
    EXPECT_EQ(specs.size(), 21u) << count;
    EXPECT_EQ(std::set<uint32_t>(specs.begin(), specs.end()).size(), 21u) << count;
    // 21 is a multiple of all but 2, whose first slice has one more.
    EXPECT_EQ(std::set<uint64_t>(numbers.begin(), numbers.end()).size(), 21u) << count;
    EXPECT_EQ(*numbers.rbegin(), 21u) << count;
  }
  EXPECT_TRUE(Slice{}.Has(5));
  EXPECT_EQ(Slice{}.NextCell(0), 1u);
  EXPECT_EQ(Slice{}.NextCell(5), 6u);
}

TEST(SliceTest, TheRunIdIsTheSameInAllJobsAndInNoOtherRun) {
  const std::string id = SlicedRunId("digest", {1, 4, "job"});
  EXPECT_TRUE(IsUlid(id)) << id;
  EXPECT_EQ(SlicedRunId("digest", {3, 4, "job"}), id);
  EXPECT_NE(SlicedRunId("digest", {1, 5, "job"}), id);
  EXPECT_NE(SlicedRunId("digest", {1, 4, "job2"}), id);
  EXPECT_NE(SlicedRunId("digest2", {1, 4, "job"}), id);
  // Jobs of two versions of the program must agree.
  EXPECT_EQ(SlicedRunId("d", {1, 2, ""}), "2RB3GKZDTWD46985853YAB9HMT");
}

}  // namespace
}  // namespace assay
