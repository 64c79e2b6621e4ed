#include "common/labels/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/status/status.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const std::vector<std::string>& words) {
  const auto labels = ParseLabels(words);
  EXPECT_EQ(labels.status().code(), absl::StatusCode::kInvalidArgument);
  return Message(labels.status());
}

TEST(Labels, AreNamesWithValues) {
  const auto labels = ParseLabels({"team=cnn", "rack.row-3_x=4 = four", "z=~"});
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(*labels, (Labels{{"rack.row-3_x", "4 = four"}, {"team", "cnn"}, {"z", "~"}}));
  EXPECT_EQ(LabelsText(*labels), "rack.row-3_x=4 = four team=cnn z=~");
  EXPECT_TRUE(ParseLabels({})->empty());
}

// Case 51 holds for what becomes a label of a metric later.
TEST(Labels, OfOtherNamesAreRefused) {
  for (const char* word : {"=x", "1a=x", "Team=x", "_x=x", "__x=x", "te am=x", "te\nam=x", "ü=x"}) {
    EXPECT_THAT(Refusal({word}), HasSubstr("is no label name")) << word;
  }
  EXPECT_TRUE(ParseLabels({std::string(63, 'a') + "=x"}).ok());
  EXPECT_THAT(Refusal({std::string(64, 'a') + "=x"}), HasSubstr("is no label name"));
  EXPECT_THAT(Refusal({"a\x1b[2J=x"}), HasSubstr("'a?[2J'"));
  EXPECT_THAT(Refusal({"team"}), HasSubstr("has no '='"));
}

TEST(Labels, OfOtherValuesAreRefused) {
  EXPECT_TRUE(ParseLabels({"a=" + std::string(128, 'x')}).ok());
  for (const std::string& value :
       {std::string(), std::string(129, 'x'), std::string("a\tb"), std::string("a\x7f"),
        std::string("\xC3\xBC"), std::string("a\0b", 3)}) {
    EXPECT_THAT(Refusal({"a=" + value}), HasSubstr("value of label a is not")) << value;
  }
}

TEST(Labels, GivenTwiceOrTooManyAreRefused) {
  EXPECT_THAT(Refusal({"a=1", "a=1"}), HasSubstr("given twice"));
  std::vector<std::string> many;
  for (size_t i = 0; i < kMaxLabels; ++i) many.push_back("a" + std::to_string(i) + "=x");
  EXPECT_TRUE(ParseLabels(many).ok());
  many.push_back("b=x");
  EXPECT_THAT(Refusal(many), HasSubstr("at most 32"));
}

TEST(Labels, AreFoundByEveryWantedOne) {
  const Labels labels = {{"a", "1"}, {"b", "2"}};
  EXPECT_TRUE(HasLabels(labels, {}));
  EXPECT_TRUE(HasLabels(labels, {{"b", "2"}}));
  EXPECT_FALSE(HasLabels(labels, {{"b", "2"}, {"c", "3"}}));
  EXPECT_FALSE(HasLabels(labels, {{"b", "1"}}));
}

}  // namespace
}  // namespace assay
