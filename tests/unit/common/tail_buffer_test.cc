#include "common/text/tail_buffer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "common/text/utf8.h"

namespace assay {
namespace {

TEST(TailBuffer, KeepsAShortTextWhole) {
  TailBuffer buffer(100);
  buffer.Append("one\n");
  buffer.Append("two");
  EXPECT_EQ(buffer.Text(), "one\ntwo");
}

// Case 47: an error text of 100 kB is cut with a note.
TEST(TailBuffer, SaysHowMuchWasCut) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += "line " + std::to_string(i % 1000 + 1000) + "\n";
  ASSERT_EQ(text.size(), 100000u);
  const std::string tail = KeepTail(text, 45);
  EXPECT_EQ(tail, "[... 99,960 bytes cut]\nline 1996\nline 1997\nline 1998\nline 1999\n");
}

TEST(TailBuffer, StartsExactlyAtALineBorder) {
  EXPECT_EQ(KeepTail("aaa\nbbb\n", 4), "[... 4 bytes cut]\nbbb\n");
}

TEST(TailBuffer, CutsALineThatIsTooLongAtACharacter) {
  EXPECT_EQ(KeepTail("xx\xE2\x80\x94yy", 4), "[... 5 bytes cut]\nyy");
}

TEST(TailBuffer, KeepsALongLineThatEndsTheText) {
  EXPECT_EQ(KeepTail("abcdefgh\n", 5), "[... 4 bytes cut]\nefgh\n");
}

TEST(TailBuffer, KeepsNothingOfNothing) {
  EXPECT_EQ(KeepTail("", 0), "");
  EXPECT_EQ(KeepTail("abc", 0), "[... 3 bytes cut]\n");
}

TEST(TailBuffer, IsTheSameHoweverTheBytesCame) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    std::string text(random() % 400, '\0');
    for (char& c : text) {
      constexpr char kSome[] = "ab\n\xE2\x80\x94\xFF";
      c = kSome[random() % (sizeof(kSome) - 1)];
    }
    const size_t most = random() % 60;
    TailBuffer buffer(most);
    for (size_t at = 0; at < text.size();) {
      const size_t piece = 1 + random() % 30;
      buffer.Append(std::string_view(text).substr(at, piece));
      at += piece;
    }
    ASSERT_EQ(buffer.Text(), KeepTail(text, most));
    ASSERT_EQ(buffer.total_bytes(), text.size());
    ASSERT_TRUE(IsUtf8(buffer.Text()));
  }
}

}  // namespace
}  // namespace assay
