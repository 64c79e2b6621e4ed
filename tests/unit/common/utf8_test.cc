#include "common/text/utf8.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace assay {
namespace {

constexpr char kReplaced[] = "\xEF\xBF\xBD";

TEST(ScrubUtf8, LeavesWellFormedTextAlone) {
  const std::string text =
      "RTX 3090 \xE2\x80\x94 \"a\", \xC3\xA9, \xE6\x97\xA5, \xF0\x9F\x8E\x89\n";
  EXPECT_TRUE(IsUtf8(text));
  EXPECT_EQ(ScrubUtf8(text), text);
}

// Cases 12 and 53: a name with byte 0xFF.
TEST(ScrubUtf8, ReplacesAByteThatIsNever) {
  EXPECT_EQ(ScrubUtf8("RTX\xFF"
                      "3090"),
            std::string("RTX") + kReplaced + "3090");
}

TEST(ScrubUtf8, ReplacesACutSequenceOnce) {
  EXPECT_EQ(ScrubUtf8("a\xE2\x80"), std::string("a") + kReplaced);
  EXPECT_EQ(ScrubUtf8("\xF0\x9F\x8E"
                      "b"),
            std::string(kReplaced) + "b");
}

TEST(ScrubUtf8, ReplacesOverlongFormsSurrogatesAndTooLargePoints) {
  for (const char* bytes :
       {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5"}) {
    EXPECT_FALSE(IsUtf8(bytes)) << bytes;
    EXPECT_TRUE(IsUtf8(ScrubUtf8(bytes)));
    EXPECT_NE(ScrubUtf8(bytes), bytes);
  }
}

// Unicode 15, table 3-8: the substitution of maximal subparts.
TEST(ScrubUtf8, ReplacesMaximalSubparts) {
  std::string wanted = "a";
  for (int i = 0; i < 3; ++i) wanted += kReplaced;
  wanted += "b";
  wanted += kReplaced;
  wanted += "c";
  wanted += kReplaced;
  wanted += kReplaced;
  wanted += "d";
  EXPECT_EQ(ScrubUtf8("a\xF1\x80\x80\xE1\x80\xC2"
                      "b\x80"
                      "c\x80\xBF"
                      "d"),
            wanted);
}

TEST(ScrubUtf8, MakesAnyBytesWellFormed) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const std::string clean = ScrubUtf8(bytes);
    ASSERT_TRUE(IsUtf8(clean));
    ASSERT_EQ(ScrubUtf8(clean), clean);
  }
}

TEST(ScrubForTerminal, LetsNoEscapeSequenceThrough) {
  EXPECT_EQ(ScrubForTerminal("a\x1B[31mb\r\n\tc\x7F\xC2\x9B"),
            std::string("a") + kReplaced + "[31mb" + kReplaced + "\n\tc" + kReplaced + kReplaced);
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("\xE2\x80\x94"), 1u);              // em dash
  EXPECT_EQ(DisplayWidth("\xC2\xB1"), 1u);                  // plus-minus
  EXPECT_EQ(DisplayWidth("\xE6\x97\xA5\xE6\x9C\xAC"), 4u);  // two CJK characters
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1u);                 // e with a combining acute
  EXPECT_EQ(DisplayWidth("\xF0\x9F\x8E\x89"), 2u);          // emoji
  EXPECT_EQ(DisplayWidth("\xFF"), 1u);                      // shown as U+FFFD
  EXPECT_EQ(DisplayWidth(""), 0u);
}

TEST(TruncateToWidth, CutsAtACharacterAndSaysSo) {
  EXPECT_EQ(TruncateToWidth("abcdef", 6), "abcdef");
  EXPECT_EQ(TruncateToWidth("abcdef", 4), "abc\xE2\x80\xA6");
  EXPECT_EQ(TruncateToWidth("\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E", 4), "\xE6\x97\xA5\xE2\x80\xA6");
  EXPECT_EQ(TruncateToWidth("abc", 0), "");
}

TEST(Utf8Boundary, NeverLiesInsideACharacter) {
  const std::string text =
      "a\xE2\x80\x94"
      "b\xF0\x9F\x8E\x89";
  EXPECT_EQ(Utf8Boundary(text, 0), 0u);
  EXPECT_EQ(Utf8Boundary(text, 1), 1u);
  EXPECT_EQ(Utf8Boundary(text, 2), 1u);
  EXPECT_EQ(Utf8Boundary(text, 3), 1u);
  EXPECT_EQ(Utf8Boundary(text, 4), 4u);
  EXPECT_EQ(Utf8Boundary(text, 8), 5u);
  EXPECT_EQ(Utf8Boundary(text, 99), text.size());
}

}  // namespace
}  // namespace assay
