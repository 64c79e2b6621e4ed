#include "runners/common/runner_options.h"

#include <gtest/gtest.h>

#include "runners/common/bad_input.h"

namespace assay {
namespace {

RunnerOptions Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "assay-x");
  return ParseRunnerOptions(static_cast<int>(arguments.size()), arguments.data());
}

TEST(RunnerOptions, ACellWithRecordsAndLifeline) {
  const RunnerOptions options = Parse({"--cell", "-", "--records", "fd:3", "--lifeline=fd:4,2.5"});
  EXPECT_EQ(options.action, RunnerOptions::Action::kCell);
  EXPECT_EQ(options.cell, "-");
  EXPECT_EQ(options.records, "fd:3");
  EXPECT_EQ(options.lifeline_fd, 4);
  EXPECT_EQ(options.lifeline_seconds, 2.5);
}

TEST(RunnerOptions, RecordsGoToStandardOutputByDefault) {
  EXPECT_EQ(Parse({"--cell", "c.json"}).records, "-");
}

TEST(RunnerOptions, TheOtherActions) {
  EXPECT_EQ(Parse({"--stack-info"}).action, RunnerOptions::Action::kStackInfo);
  EXPECT_EQ(Parse({"--list"}).action, RunnerOptions::Action::kList);
  EXPECT_EQ(Parse({"--describe", "resnet50"}).model, "resnet50");
  EXPECT_EQ(Parse({"--cell", "--help"}).cell, "--help");
}

TEST(RunnerOptions, BadInputIsOneSentence) {
  for (const std::vector<const char*>& arguments :
       std::vector<std::vector<const char*>>{{},
                                             {"--cell"},
                                             {"--cell="},
                                             {"--bogus"},
                                             {"cell.json"},
                                             {"--list", "--stack-info"},
                                             {"--cell", "c", "--records", "fd:x"},
                                             {"--cell", "c", "--records", "fd:-1"},
                                             {"--cell", "c", "--records", "fd:99999999999"},
                                             {"--cell", "c", "--lifeline", "fd:3"},
                                             {"--cell", "c", "--lifeline", "3,5"},
                                             {"--cell", "c", "--lifeline", "fd:3,0"},
                                             {"--cell", "c", "--lifeline", "fd:3,nan"},
                                             {"--cell", "c", "--lifeline", "fd:3,5x"}}) {
    try {
      Parse(arguments);
      ADD_FAILURE() << "accepted " << (arguments.empty() ? "nothing" : arguments.back());
    } catch (const BadInput& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace assay
