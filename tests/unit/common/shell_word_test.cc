#include "common/text/shell_word.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ShellWord, LeavesHarmlessWords) {
  EXPECT_EQ(ShellWord("/usr/bin/assay-train"), "/usr/bin/assay-train");
  EXPECT_EQ(ShellWord("10.0.0.1:7070,a@b%c+_"), "10.0.0.1:7070,a@b%c+_");
}

TEST(ShellWord, QuotesWhatAShellReads) {
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a b;$(c)"), "'a b;$(c)'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("~x"), "'~x'");
  EXPECT_EQ(ShellWord("A=b"), "'A=b'");
}

}  // namespace
}  // namespace assay
