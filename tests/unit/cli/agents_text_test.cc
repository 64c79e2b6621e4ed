#include "cli/agents_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

AgentSummary Agent(const std::string& node, const std::string& state) {
  AgentSummary agent;
  agent.inventory.node = node;
  agent.inventory.machine_id = "m";
  agent.state = state;
  Device device;
  device.uuid = "GPU-" + node;
  device.usable = true;
  agent.inventory.devices = {device};
  agent.cards = {"RTX 3090"};
  return agent;
}

TEST(AgentsText, ALostNodeThatIsDrainedSaysBoth) {
  AgentSummary agent = Agent("n1", "lost");
  EXPECT_EQ(StateText(agent), "lost");
  agent.draining = true;
  EXPECT_EQ(StateText(agent), "lost (drained)");
  agent.state = "draining";
  EXPECT_EQ(StateText(agent), "draining");
}

TEST(AgentsText, TheTableHasALineANodeWithWhatItHolds) {
  AgentSummary busy = Agent("n2", "draining");
  busy.held = {{"A", "R", 3, "resnet50"}};
  const std::string table = AgentsTable(std::vector{Agent("n1", "up"), busy}, 100, false);
  EXPECT_THAT(table, ::testing::ContainsRegex("n1 +up +1 x RTX 3090 +none +0\n"));
  EXPECT_THAT(table, ::testing::ContainsRegex("n2 +draining +1 x RTX 3090 +none +1\n"));
}

TEST(AgentsText, OnlyWhatChangedIsALine) {
  const std::vector<AgentSummary> before = {Agent("n1", "up"), Agent("n2", "up")};
  EXPECT_EQ(AgentChanges({}, before).size(), 2u);
  EXPECT_TRUE(AgentChanges(before, before).empty());
  std::vector<AgentSummary> after = before;
  after[1].state = "lost";
  after[0].last_seen_unix_ms = 5;
  EXPECT_THAT(AgentChanges(before, after),
              ::testing::ElementsAre("n2 lost: 1 x RTX 3090, stacks none"));
  after.pop_back();
  EXPECT_THAT(AgentChanges(before, after), ::testing::ElementsAre("n2 gone"));
}

TEST(AgentsText, ALineSaysWhatRuns) {
  AgentSummary agent = Agent("n1", "up");
  agent.held = {{"01A", "01R", 3, "resnet50"}};
  EXPECT_EQ(AgentLine(agent), "n1 up: 1 x RTX 3090, stacks none; runs run 01R cell 3, resnet50");
}

TEST(AgentsText, ABlockNeverFillsTheTerminal) {
  std::vector<AgentSummary> agents;
  for (int i = 0; i < 50; ++i) agents.push_back(Agent("n" + std::to_string(i), "up"));
  for (const size_t rows : {1, 4, 10, 24}) {
    const std::string block = AgentsBlock(agents, 100, rows, false);
    EXPECT_LE(std::count(block.begin(), block.end(), '\n'), std::max<size_t>(rows - 1, 3)) << rows;
    EXPECT_THAT(block, ::testing::ContainsRegex("and [0-9]+ more\n$")) << rows;
  }
  EXPECT_THAT(AgentsBlock(agents, 100, 60, false), Not(HasSubstr("more")));
  EXPECT_EQ(AgentsBlock({}, 100, 24, false), "no agent has connected\n");
}

TEST(AgentsText, LinesThatWrapTakeSeveralRows) {
  EXPECT_EQ(RowsOf("", 10), 0u);
  EXPECT_EQ(RowsOf("one\n\nthree\n", 10), 3u);
  EXPECT_EQ(RowsOf("0123456789\n", 10), 1u);
  EXPECT_EQ(RowsOf("0123456789x\n", 10), 2u);
}

TEST(AgentsText, JsonNamesTheHeldCells) {
  AgentSummary agent = Agent("n1", "draining");
  agent.draining = true;
  agent.held = {{"01A", "01R", 3, "resnet50"}};
  const auto json = AgentJson(agent);
  EXPECT_EQ(json.at("draining"), true);
  EXPECT_EQ(json.at("held").at(0).at("cell"), 3);
  EXPECT_EQ(json.at("held").at(0).at("run"), "01R");
  EXPECT_EQ(json.at("held_attempts"), nlohmann::ordered_json::array({"01A"}));
}

TEST(AgentsText, WhatAPeerSentIsMadePrintable) {
  EXPECT_THAT(HeldText({"a", "r", 1, "evil\x1b[2J"}), Not(HasSubstr("\x1b")));
  EXPECT_EQ(HeldText({"01A", "", 0, ""}), "attempt 01A");
}

}  // namespace
}  // namespace assay::cli
