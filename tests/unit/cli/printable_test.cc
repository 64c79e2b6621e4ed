#include "cli/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace assay::cli {
namespace {

TEST(Printable, KeepsOrdinaryText) {
  EXPECT_EQ(Printable("RTX 3090 — größer, 測試"), "RTX 3090 — größer, 測試");
}

TEST(Printable, TakesWholeEscapeSequencesAway) {
  EXPECT_EQ(Printable("a\x1B[31;1mb\x1B[0mc"), "abc");
  EXPECT_EQ(Printable("a\x1B]0;title\ab"), "ab");
  EXPECT_EQ(Printable("a\x1B]8;;http://x\x1B\\b"), "ab");
  EXPECT_EQ(Printable("a\x1BPq#0\x1B\\b"), "ab");
  EXPECT_EQ(Printable("a\x1B(0b\x1B"
                      "7c"),
            "abc");
  EXPECT_EQ(Printable("a\xC2\x9B"
                      "31mb"),
            "ab");
}

TEST(Printable, AnUnendedSequenceHidesNothingElse) {
  EXPECT_EQ(Printable("a\x1B]0;no end"), "a0;no end");
  EXPECT_EQ(Printable("a\x1B[31"), "a31");
  EXPECT_EQ(Printable("a\x1B"), "a");
}

TEST(Printable, TakesControlCharactersAndDirectionMarksAway) {
  EXPECT_EQ(Printable("a\b\a\x7F\xC2\x85"
                      "b"),
            "ab");
  EXPECT_EQ(Printable("a\xE2\x80\xAE"
                      "b\xE2\x81\xA6"
                      "c"),
            "abc");
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "ab");
}

// Case 53: a byte 0xFF in a name.
TEST(Printable, BrokenBytesBecomeTheReplacementCharacter) {
  EXPECT_EQ(Printable("a\xFF"
                      "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(Printable("\xC3"), "\xEF\xBF\xBD");
  EXPECT_EQ(Printable("\xED\xA0\x80").find('\xED'), std::string::npos);  // a surrogate
}

TEST(Printable, OneLineStaysOneLine) { EXPECT_EQ(Printable("a\nb\r\nc\td"), "a b c d"); }

TEST(PrintableLines, KeepsLinesAndUndoesCarriageReturns) {
  EXPECT_EQ(PrintableLines("a\r\nb\rc\n\td"), "a\nb\nc\n    d");
}

}  // namespace
}  // namespace assay::cli
