#include "agent/process/process_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace assay {
namespace {

TEST(ParseProcStat, ReadsACommandNameWithBracketsBlanksAndNewline) {
  const auto entry = ParseProcStat(
      "42 (a) S 1 ) \n x) R 7 8 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 20\n");
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->pid, 42);
  EXPECT_EQ(entry->state, 'R');
  EXPECT_EQ(entry->parent, 7);
  EXPECT_EQ(entry->group, 8);
  EXPECT_EQ(entry->session, 9);
  EXPECT_EQ(entry->start_ticks, 98765u);
}

TEST(ParseProcStat, RefusesAnythingElse) {
  EXPECT_FALSE(ParseProcStat("").has_value());
  EXPECT_FALSE(ParseProcStat("42").has_value());
  EXPECT_FALSE(ParseProcStat("x (y) R 1 2 3").has_value());
  EXPECT_FALSE(ParseProcStat("42 (y) R 1 2").has_value());
}

TEST(ProcessEntry, AProcessLivesAsLongAsAnyOfItsThreads) {
  const auto state = [](const char* letter, const char* threads) {
    return ParseProcStat(std::string("42 (a) ") + letter +
                         " 7 8 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 " + threads +
                         " 0 98765 1000 20\n")
        ->Living();
  };
  EXPECT_TRUE(state("S", "1"));
  EXPECT_FALSE(state("Z", "1"));
  EXPECT_TRUE(state("Z", "2"));  // the first thread has ended, another is in a driver
  EXPECT_FALSE(state("X", "1"));
}

TEST(ReadProcessTable, HoldsThisProcessWithItsParent) {
  const auto table = ReadProcessTable();
  const auto self = std::find_if(table.begin(), table.end(),
                                 [](const ProcessEntry& e) { return e.pid == ::getpid(); });
  ASSERT_NE(self, table.end());
  EXPECT_EQ(self->parent, ::getppid());
}

TEST(EnvironmentOf, ReadsAVariableThisProcessWasStartedWith) {
  ASSERT_NE(::getenv("PATH"), nullptr);
  EXPECT_TRUE(EnvironmentOf(::getpid(), "PATH").has_value());
  EXPECT_FALSE(EnvironmentOf(::getpid(), "ASSAY_NO_SUCH_VARIABLE").has_value());
}

}  // namespace
}  // namespace assay
