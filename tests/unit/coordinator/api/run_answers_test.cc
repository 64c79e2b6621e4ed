#include "coordinator/api/run_answers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

AgentView Agent(const std::string& node, size_t devices) {
  AgentView agent;
  agent.inventory.node = node;
  for (size_t i = 0; i < devices; ++i) {
    Device device;
    device.uuid = fmt::format("GPU-{}-{}", node, i);
    device.warnings = {std::string(1000, 'w')};
    agent.inventory.devices.push_back(device);
    agent.cards.push_back("RTX 3090");
  }
  return agent;
}

// Names of the nodes, page after page, as a client asks for them.
std::vector<std::vector<std::string>> Pages(const std::vector<AgentView>& agents, size_t budget) {
  std::vector<std::vector<std::string>> pages;
  v1::ListAgentsRequest request;
  for (bool more = true; more && pages.size() < 100;) {
    v1::ListAgentsReply reply;
    FillAgents(agents, request, budget, &reply);
    EXPECT_LE(reply.ByteSizeLong(), budget + 1000);
    pages.emplace_back();
    for (const auto& each : reply.agents()) pages.back().push_back(each.inventory().node());
    more = reply.more();
    if (!pages.back().empty()) request.set_after(pages.back().back());
  }
  return pages;
}

TEST(FillAgents, GivesAllOnOnePageWhereTheyFit) {
  EXPECT_THAT(Pages({Agent("n1", 1), Agent("n2", 1)}, 100'000),
              ElementsAre(ElementsAre("n1", "n2")));
  EXPECT_THAT(Pages({}, 100'000), ElementsAre(IsEmpty()));
}

TEST(FillAgents, BreaksTheListBeforeWhatWouldBeTooMuchAndLeavesNobodyOut) {
  EXPECT_THAT(Pages({Agent("n1", 4), Agent("n2", 4), Agent("n3", 7), Agent("n4", 1)}, 10'000),
              ElementsAre(ElementsAre("n1", "n2"), ElementsAre("n3", "n4")));
}

TEST(FillAgents, ListsANodeThatIsTooLongAloneWithoutWhatItHasAndSaysSo) {
  const std::vector<AgentView> agents = {Agent("n1", 1), Agent("n2", 50), Agent("n3", 1)};
  EXPECT_THAT(Pages(agents, 10'000), ElementsAre(ElementsAre("n1", "n2", "n3")));
  v1::ListAgentsReply reply;
  FillAgents(agents, {}, 10'000, &reply);
  EXPECT_EQ(reply.agents(1).inventory().devices_size(), 0);
  EXPECT_THAT(reply.agents(1).inventory().warnings(0),
              HasSubstr("50 devices and 0 stacks are too long"));
}

TEST(FillAgents, OfOneNodeGivesThatAlone) {
  v1::ListAgentsRequest request;
  request.set_node("n2");
  v1::ListAgentsReply reply;
  FillAgents({Agent("n1", 1), Agent("n2", 1)}, request, 10'000, &reply);
  ASSERT_EQ(reply.agents_size(), 1);
  EXPECT_EQ(reply.agents(0).inventory().node(), "n2");
  EXPECT_FALSE(reply.more());
}

}  // namespace
}  // namespace assay
