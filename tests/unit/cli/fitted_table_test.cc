#include "cli/fitted_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "common/text/utf8.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t Widest(const std::string& text) {
  size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, DisplayWidth(line));
  return widest;
}

TEST(FittedTable, ConstantColumnsMoveToTheHeading) {
  const std::string text =
      RenderFitted({{"model", Align::kLeft, 0, 0, " "}, {"batch", Align::kRight, 0, 0, "batch "}},
                   {{{"resnet50", "64"}}, {{"resnet50", "128"}}}, 80, false);
  EXPECT_EQ(text, "resnet50\nbatch\n   64\n  128\n");
}

TEST(FittedTable, OneRowKeepsItsColumns) {
  EXPECT_EQ(RenderFitted({{"model", Align::kLeft, 0, 0, " "}}, {{{"resnet50"}}}, 80, false),
            "model\nresnet50\n");
}

TEST(FittedTable, EmptyColumnsGo) {
  EXPECT_EQ(RenderFitted({{"a", Align::kLeft, 0, 0, ""}, {"b", Align::kLeft, 0, 0, ""}},
                         {{{"1", ""}}, {{"2", ""}}}, 80, false),
            "a\n1\n2\n");
}

TEST(FittedTable, ShortensBeforeItDrops) {
  const std::string text =
      RenderFitted({{"name", Align::kLeft, 8, 0, ""}, {"note", Align::kLeft, 0, 1, ""}},
                   {{{"a-very-long-name-indeed", "0123456789"}}}, 24, false);
  EXPECT_THAT(text, HasSubstr("0123456789"));
  EXPECT_THAT(text, HasSubstr("…"));
  EXPECT_LE(Widest(text), 24u);
}

TEST(FittedTable, DropsTheLowestOrderFirstAndSaysSo) {
  const std::string text = RenderFitted({{"keep", Align::kLeft, 0, 0, ""},
                                         {"second", Align::kLeft, 0, 2, ""},
                                         {"first", Align::kLeft, 0, 1, ""}},
                                        {{{"0123456789", "0123456789", "0123456789"}}}, 23, false);
  EXPECT_THAT(text, HasSubstr("second"));
  EXPECT_THAT(text, HasSubstr("(no room for: first"));
}

TEST(FittedTable, WhatWasCutGetsTheRoomOfWhatWasDropped) {
  const std::string text =
      RenderFitted({{"name", Align::kLeft, 4, 0, ""}, {"figure", Align::kLeft, 0, 1, ""}},
                   {{{"a-name-of-20-columns", std::string(60, '9')}}}, 24, false);
  EXPECT_THAT(text, HasSubstr("a-name-of-20-columns"));
}

TEST(FittedTable, AFileHasRoomForAll) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const size_t width = TableWidth(fileno(file));
  std::fclose(file);
  const std::string text =
      RenderFitted({{"a", Align::kLeft, 4, 0, ""}, {"b", Align::kLeft, 0, 1, ""}},
                   {{{std::string(500, 'x'), std::string(5000, '9')}}}, width, false);
  EXPECT_THAT(text, HasSubstr(std::string(500, 'x') + "  " + std::string(5000, '9')));
}

// Case 12: names of any kind stay in their columns.
TEST(FittedTable, AlignsWideAndOddNames) {
  const std::string text =
      RenderFitted({{"card", Align::kLeft, 0, 0, ""}, {"v", Align::kRight, 0, 0, ""}},
                   {{{"測試卡", "1"}},
                    {{"em — dash", "22"}},
                    {{"a\"b,c\nd", "3"}},
                    {{"\xFF", "4"}},
                    {{"", "5"}}},
                   100, false);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(DisplayWidth(line), 13u) << line;
}

TEST(FittedTable, EscapeSequencesOfACellNeverReachTheTerminal) {
  const std::string text =
      RenderFitted({{"card", Align::kLeft, 0, 0, ""}}, {{{"\x1B]0;x\a\x1B[2Jcard"}}}, 80, false);
  EXPECT_THAT(text, Not(HasSubstr("\x1B")));
  EXPECT_THAT(text, HasSubstr("card"));
}

TEST(FittedTable, ColourIsOnlyThereWhenAskedFor) {
  const std::vector<FittedColumn> columns = {{"a", Align::kLeft, 0, 0, ""}};
  const std::vector<FittedRow> rows = {{{"x"}, Color::kRed}};
  EXPECT_THAT(RenderFitted(columns, rows, 80, false), Not(HasSubstr("\x1B")));
  EXPECT_THAT(RenderFitted(columns, rows, 80, true), HasSubstr("\x1B[31mx"));
}

}  // namespace
}  // namespace assay::cli
