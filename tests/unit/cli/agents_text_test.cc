#include "cli/agents_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
