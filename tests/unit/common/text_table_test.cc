#include "common/text/text_table.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(TextTable, AlignsByColumns) {
  TextTable table({{"card"}, {"img/s", Align::kRight}, {"outcome"}});
  table.AddRow({"RTX 3090", "812.5", "ok"});
  table.AddRow({"A100", "1,208", "mem_limit"});
  EXPECT_EQ(table.Render(),
            "card      img/s  outcome\n"
            "RTX 3090  812.5  ok\n"
            "A100      1,208  mem_limit\n");
}

TEST(TextTable, AlignsByDisplayWidth) {
  TextTable table({{"name"}, {"x", Align::kRight}});
  table.AddRow({"\xE6\x97\xA5\xE6\x9C\xAC", "1"});
  table.AddRow({"\xE2\x80\x94", "22"});
  EXPECT_EQ(table.Render(),
            "name   x\n"
            "\xE6\x97\xA5\xE6\x9C\xAC   1\n"
            "\xE2\x80\x94     22\n");
}

// Case 12: a card name may hold anything.
TEST(TextTable, ACellStaysOnItsLineAndCannotEscape) {
  TextTable table({{"card"}});
  table.AddRow({"a\nb\x1B[2J\xFF"});
  EXPECT_EQ(table.Render(), "card\na b\xEF\xBF\xBD[2J\xEF\xBF\xBD\n");
}

TEST(TextTable, CutsLongCells) {
  TextTable table({{"message", Align::kLeft, 8}});
  table.AddRow({"out of memory"});
  EXPECT_EQ(table.Render(), "message\nout of \xE2\x80\xA6\n");
}

TEST(TextTable, LeavesOutAnEmptyColumnWithoutTitle) {
  TextTable table({{"a"}, {""}, {"b"}});
  table.AddRow({"1", "", "2"});
  EXPECT_EQ(table.Render(), "a  b\n1  2\n");
}

TEST(TextTable, TakesRowsOfAnyLength) {
  TextTable table({{"a"}, {"b"}});
  table.AddRow({"1"});
  table.AddRow({"1", "2", "3"});
  EXPECT_EQ(table.Render(), "a  b\n1\n1  2\n");
}

TEST(TextTable, WithoutRowsShowsItsTitles) {
  EXPECT_EQ(TextTable({{"a"}, {"b"}}).Render(), "a  b\n");
}

}  // namespace
}  // namespace assay
