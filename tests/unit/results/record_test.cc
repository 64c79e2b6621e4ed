#include "common/results/record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace assay {
namespace {

TEST(FieldTable, HasEveryFieldOnceInOrder) {
  ASSERT_EQ(AllFields().size(), kFieldCount);
  std::set<std::string_view> names;
  for (size_t i = 0; i < kFieldCount; ++i) {
    const FieldInfo& info = AllFields()[i];
    EXPECT_EQ(static_cast<size_t>(info.field), i);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(FieldByName(info.name), info.field);
    EXPECT_EQ(InfoOf(info.field).name, info.name);
    EXPECT_FALSE(info.doc.empty());
  }
}

TEST(FieldTable, KnowsNoOtherName) {
  EXPECT_FALSE(FieldByName("throughputs").has_value());
  EXPECT_FALSE(FieldByName("").has_value());
}

TEST(Record, HoldsACountAsItsDigitsOrMax) {
  Record record;
  ASSERT_TRUE(record.Set(Field::kBatch, int64_t{64}).ok());
  EXPECT_EQ(record.Text(Field::kBatch), "64");
  ASSERT_TRUE(record.Set(Field::kBatch, "max").ok());
  EXPECT_EQ(record.Text(Field::kBatch), "max");
  for (const char* wrong : {"", "064", "-1", "1e3", "64 ", "MAX", "1234567890123456789"}) {
    EXPECT_FALSE(record.Set(Field::kBatch, wrong).ok()) << wrong;
  }
  EXPECT_FALSE(record.Set(Field::kBatch, 64.0).ok());
  EXPECT_EQ(record.Text(Field::kBatch), "max");
}

TEST(Record, KnowsNothingAtFirst) {
  const Record record;
  for (const FieldInfo& info : AllFields()) {
    EXPECT_FALSE(record.Has(info.field));
    EXPECT_EQ(record.Get(info.field), Value());
  }
  EXPECT_EQ(record.Text(Field::kModel), "");
  EXPECT_FALSE(record.Number(Field::kThroughput).has_value());
  EXPECT_TRUE(record.List(Field::kMarks).empty());
}

TEST(Record, GivesBackWhatWasSet) {
  Record record;
  ASSERT_TRUE(record.Set(Field::kThroughput, 812.5).ok());
  ASSERT_TRUE(record.Set(Field::kSteps, int64_t{100}).ok());
  ASSERT_TRUE(record.Set(Field::kSimulated, false).ok());
  record.SetText(Field::kModel, "resnet50");
  EXPECT_EQ(record.Number(Field::kThroughput), 812.5);
  EXPECT_EQ(record.Integer(Field::kSteps), 100);
  EXPECT_EQ(record.Number(Field::kSteps), 100.0);
  EXPECT_EQ(record.Flag(Field::kSimulated), false);
  EXPECT_EQ(record.Text(Field::kModel), "resnet50");
}

TEST(Record, RefusesAnotherTypeAndNamesTheField) {
  Record record;
  const absl::Status status = record.Set(Field::kSteps, 1.5);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("'steps' takes an integer"), std::string::npos);
  EXPECT_FALSE(record.Set(Field::kThroughput, std::string("fast")).ok());
  EXPECT_FALSE(record.Set(Field::kModel, int64_t{1}).ok());
  EXPECT_FALSE(record.Set(Field::kSimulated, int64_t{1}).ok());
  EXPECT_FALSE(record.Set(Field::kThroughput, true).ok());
  EXPECT_EQ(record, Record());
}

TEST(Record, TakesAnIntegerForANumber) {
  Record record;
  ASSERT_TRUE(record.Set(Field::kThroughput, int64_t{6124}).ok());
  EXPECT_EQ(record.Get(Field::kThroughput), Value(6124.0));
}

// Case 53: NaN and infinity are not known, and what was there before is not kept either.
TEST(Record, ANumberThatIsNotFiniteClearsTheField) {
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    Record record;
    ASSERT_TRUE(record.Set(Field::kThroughput, 1.0).ok());
    ASSERT_TRUE(record.Set(Field::kThroughput, value).ok());
    EXPECT_FALSE(record.Has(Field::kThroughput));
  }
}

// Case 12.
TEST(Record, ReplacesBytesThatAreNotUtf8) {
  Record record;
  record.SetText(Field::kCard, "RTX\xFF");
  EXPECT_EQ(record.Text(Field::kCard), "RTX\xEF\xBF\xBD");
}

TEST(Record, NothingClearsTheField) {
  Record record;
  record.SetText(Field::kModel, "resnet50");
  ASSERT_TRUE(record.Set(Field::kModel, Value()).ok());
  EXPECT_FALSE(record.Has(Field::kModel));
}

TEST(Record, AnEmptyTextIsKnown) {
  Record record;
  record.SetText(Field::kMessage, "");
  EXPECT_TRUE(record.Has(Field::kMessage));
}

TEST(Record, SetTextLeavesAFieldOfAnotherTypeAlone) {
  Record record;
  ASSERT_TRUE(record.Set(Field::kSteps, int64_t{3}).ok());
  record.SetText(Field::kSteps, "4");
  EXPECT_EQ(record.Integer(Field::kSteps), 3);
}

TEST(Record, ListsKeepTheirItems) {
  Record record;
  const std::vector<std::string> uuids = {"GPU-1", "GPU-2"};
  ASSERT_TRUE(record.SetList(Field::kGpuUuids, uuids).ok());
  EXPECT_EQ(record.List(Field::kGpuUuids), uuids);
  EXPECT_EQ(record.Text(Field::kGpuUuids), "GPU-1;GPU-2");
}

TEST(Record, AListItemCannotSplitTheList) {
  Record record;
  ASSERT_TRUE(record.SetList(Field::kMarks, std::vector<std::string>{"a;b", "c"}).ok());
  EXPECT_EQ(record.List(Field::kMarks), (std::vector<std::string>{"a,b", "c"}));
}

TEST(Record, OrderOfSettingDoesNotMatter) {
  Record one;
  one.SetText(Field::kModel, "m");
  ASSERT_TRUE(one.Set(Field::kSteps, int64_t{1}).ok());
  Record other;
  ASSERT_TRUE(other.Set(Field::kSteps, int64_t{1}).ok());
  other.SetText(Field::kModel, "m");
  EXPECT_EQ(one, other);
}

TEST(Record, MergeTakesOverWhatTheOtherKnows) {
  Record record;
  record.SetText(Field::kModel, "old");
  record.SetText(Field::kNode, "a");
  Record other;
  other.SetText(Field::kModel, "new");
  ASSERT_TRUE(other.Set(Field::kSteps, int64_t{1}).ok());
  record.Merge(other);
  record.Merge(record);
  EXPECT_EQ(record.Text(Field::kModel), "new");
  EXPECT_EQ(record.Text(Field::kNode), "a");
  EXPECT_EQ(record.Integer(Field::kSteps), 1);
}

}  // namespace
}  // namespace assay
