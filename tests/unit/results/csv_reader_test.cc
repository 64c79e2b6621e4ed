#include "common/results/csv_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Refusal(std::string_view text) {
  const auto table = ReadCsv(text);
  EXPECT_FALSE(table.ok());
  return std::string(table.status().message());
}

TEST(ReadCsv, TakesQuotesRemarksAndBothLineEnds) {
  const auto table =
      ReadCsv("\xEF\xBB\xBF# why, from where\r\na,b\r\n1,\"x, \"\"y\"\"\nz\"\n\n# no\n2,");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->columns, ElementsAre("a", "b"));
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_THAT(table->rows[0].cells, ElementsAre("1", "x, \"y\"\nz"));
  EXPECT_EQ(table->rows[0].line, 3u);
  EXPECT_THAT(table->rows[1].cells, ElementsAre("2", ""));
  EXPECT_EQ(table->rows[1].line, 7u);
}

TEST(ReadCsv, SaysWhereItIsNotCsv) {
  EXPECT_THAT(Refusal(""), HasSubstr("no header"));
  EXPECT_THAT(Refusal("a,b\n1\n"), HasSubstr("line 2: 1 cells under 2 columns"));
  EXPECT_THAT(Refusal("a\n\"x\n"), HasSubstr("line 2: a quote is not closed"));
  EXPECT_THAT(Refusal("a\n\"x\"y\n"), HasSubstr("line 2: text behind"));
  EXPECT_THAT(Refusal("a,a\n"), HasSubstr("column 'a' stands there twice"));
  EXPECT_THAT(Refusal("a\n\xff\n"), HasSubstr("not UTF-8"));
}

}  // namespace
}  // namespace assay
