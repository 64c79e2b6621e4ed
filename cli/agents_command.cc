// agents: the nodes of a coordinator.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/agents_text.h"
#include "cli/agents_watch.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/fitted_table.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

void PrintAgentWarnings(CommandContext& context, const AgentSummary& agent) {
  const NodeInventory& node = agent.inventory;
  for (const std::string& warning : node.warnings) {
    context.output.Warning(fmt::format("{}: {}", node.node, warning));
  }
  for (const Device& device : node.devices) {
    for (const std::string& warning : device.warnings) {
      context.output.Warning(fmt::format("{}, {}: {}", node.node, device.uuid, warning));
    }
  }
  for (const Stack& stack : node.stacks) {
    if (stack.unusable_reason.empty()) continue;
    context.output.Warning(fmt::format("{}: stack {} cannot be used: {}", node.node, stack.name,
                                       stack.unusable_reason));
  }
}

}  // namespace

absl::StatusOr<std::vector<AgentSummary>> WaitForAgents(Session& session) {
  constexpr std::chrono::seconds kMostWait{10};
  const BootTime deadline = BootClock::now() + kMostWait;
  while (true) {
    auto agents = session.Call([](Control& control) { return control.ListAgents(""); });
    if (!agents.ok() || !session.connection().local() || BootClock::now() >= deadline) {
      return agents;
    }
    // A drained node is listed before it has said what it is.
    const bool came = std::any_of(agents->begin(), agents->end(), [](const AgentSummary& agent) {
      return !agent.inventory.machine_id.empty() || agent.state != "lost";
    });
    if (came) return agents;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

namespace {

void WarnOfInsecure(CommandContext& context, const Session& session) {
  if (!session.connection().info().insecure) return;
  context.output.Warning(
      "this coordinator runs with --insecure: everyone who can reach it may read, run and change "
      "everything");
}

int WatchFleet(CommandContext& context) {
  const bool drawn = context.args.format == Format::kTable && IsTerminal(context.output.out_fd());
  Signals signals(drawn ? context.output.out_fd() : -1);
  Session session = MakeSession(context, signals.interrupt_fd());
  const absl::Status status = session.Open();
  if (absl::IsCancelled(status)) return kExitOk;
  if (!status.ok()) return FailCommand(context, status);
  WarnOfInsecure(context, session);
  return WatchAgents(context, session, signals, drawn);
}

}  // namespace

int AgentsCommand(CommandContext& context) {
  if (context.args.watch) return WatchFleet(context);
  Session session = MakeSession(context);
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  const auto agents = WaitForAgents(session);
  if (!agents.ok()) return FailCommand(context, agents.status());
  if (context.args.format == Format::kJson) {
    Json list = Json::array();
    for (const AgentSummary& agent : *agents) list.push_back(AgentJson(agent));
    context.output.Out(
        DumpJson({{"agents", list}, {"insecure", session.connection().info().insecure}}));
    return kExitOk;
  }
  WarnOfInsecure(context, session);
  if (agents->empty()) {
    PrintNote(context, "no agent has connected");
    return kExitOk;
  }
  context.output.Out(
      AgentsTable(*agents, TableWidth(context.output.out_fd()), context.output.out_color()));
  for (const AgentSummary& agent : *agents) PrintAgentWarnings(context, agent);
  return kExitOk;
}

}  // namespace assay::cli
