#include "agent/process/tail_buffer.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(TailBuffer, KeepsAllUpToTheLimit) {
  TailBuffer tail(8);
  tail.Append("abc");
  tail.Append("de");
  EXPECT_EQ(tail.Text(), "abcde");
}

TEST(TailBuffer, KeepsTheLastBytesInOrderOverManyAppends) {
  TailBuffer tail(5);
  std::string all;
  for (int i = 0; i < 40; ++i) {
    const std::string part(static_cast<size_t>(i % 4), static_cast<char>('a' + i % 26));
    tail.Append(part);
    all += part;
    EXPECT_EQ(tail.Text(), all.size() > 5 ? all.substr(all.size() - 5) : all);
  }
}

TEST(TailBuffer, KeepsTheEndOfOneAppendThatIsLargerThanTheLimit) {
  TailBuffer tail(4);
  tail.Append("xy");
  tail.Append("0123456789");
  EXPECT_EQ(tail.Text(), "6789");
}

}  // namespace
}  // namespace assay
