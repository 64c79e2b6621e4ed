#include "cli/agents_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cli/commands.h"
#include "cli/fitted_table.h"
#include "cli/printable.h"
#include "common/text/number_format.h"
#include "common/text/utf8.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

// "2 x RTX 3090 (24.0 GiB), 1 x RTX 2080 Ti (11.0 GiB)"
std::string DevicesText(const AgentSummary& agent) {
  std::vector<std::pair<std::string, int>> kinds;
  for (size_t i = 0; i < agent.inventory.devices.size(); ++i) {
    const Device& device = agent.inventory.devices[i];
    std::string name =
        i < agent.cards.size() && !agent.cards[i].empty() ? agent.cards[i] : device.raw_name;
    if (name.empty()) name = "unnamed";
    if (device.memory_total_bytes > 0) {
      name += fmt::format(" ({})", HumanBytes(static_cast<int64_t>(device.memory_total_bytes)));
    }
    if (!device.usable) name += " unusable";
    if (device.simulated) name += " simulated";
    const auto known = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const auto& kind) { return kind.first == name; });
    if (known == kinds.end()) {
      kinds.emplace_back(name, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [name, count] : kinds) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, name);
  }
  return text.empty() ? "none" : text;
}

std::string StacksText(const NodeInventory& node) {
  std::string text;
  for (const Stack& stack : node.stacks) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", stack.name,
                        stack.unusable_reason.empty() ? "" : " (unusable)");
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Json HeldJson(const std::vector<HeldCell>& held) {
  Json list = Json::array();
  for (const HeldCell& cell : held) {
    list.push_back(
        {{"run", cell.run}, {"cell", cell.cell}, {"label", cell.label}, {"attempt", cell.attempt}});
  }
  return list;
}

Json AgentJson(const AgentSummary& agent) {
  const NodeInventory& node = agent.inventory;
  Json devices = Json::array();
  for (size_t i = 0; i < node.devices.size(); ++i) {
    const Device& device = node.devices[i];
    devices.push_back({{"uuid", device.uuid},
                       {"kind", device.kind},
                       {"card", TextOrNull(i < agent.cards.size() ? agent.cards[i] : "")},
                       {"raw_name", device.raw_name},
                       {"memory_total_bytes", device.memory_total_bytes},
                       {"driver_version", TextOrNull(device.driver_version)},
                       {"simulated", device.simulated},
                       {"usable", device.usable},
                       {"warnings", device.warnings}});
  }
  Json stacks = Json::array();
  for (const Stack& stack : node.stacks) {
    stacks.push_back({{"name", stack.name},
                      {"runner", stack.runner},
                      {"versions", stack.versions},
                      {"simulated", stack.simulated},
                      {"unusable_reason", TextOrNull(stack.unusable_reason)}});
  }
  Json attempts = Json::array();
  for (const HeldCell& held : agent.held) attempts.push_back(held.attempt);
  return {{"node", node.node},
          {"state", agent.state},
          {"address", TextOrNull(agent.address)},
          {"last_seen", TextOrNull(TimeText(agent.last_seen_unix_ms))},
          {"version", node.agent_version},
          {"os", node.os},
          {"cpu_model", node.cpu_model},
          {"cpu_count", node.cpu_count},
          {"memory_bytes", node.memory_bytes},
          {"devices", devices},
          {"stacks", stacks},
          {"warnings", node.warnings},
          {"draining", agent.draining},
          {"held", HeldJson(agent.held)},
          {"held_attempts", attempts}};
}

std::string HeldText(const HeldCell& held) {
  if (held.run.empty()) return "attempt " + Printable(held.attempt);
  return Printable(fmt::format("run {} cell {}{}{}", held.run, held.cell,
                               held.label.empty() ? "" : ", ", held.label));
}

std::string StateText(const AgentSummary& agent) {
  return agent.state == "lost" && agent.draining ? "lost (drained)" : agent.state;
}

std::string AgentsTable(std::span<const AgentSummary> agents, size_t width, bool color) {
  const std::vector<FittedColumn> columns = {{"node", Align::kLeft, 10, 0, ""},
                                             {"state", Align::kLeft, 0, 0, ""},
                                             {"devices", Align::kLeft, 24, 0, ""},
                                             {"stacks", Align::kLeft, 16, 0, ""},
                                             {"runs now", Align::kRight, 0, 1, ""}};
  std::vector<FittedRow> rows;
  for (const AgentSummary& agent : agents) {
    rows.push_back({{agent.inventory.node, StateText(agent), DevicesText(agent),
                     StacksText(agent.inventory), fmt::format("{}", agent.held.size())},
                    agent.state == "up" ? Color::kNone : Color::kYellow});
  }
  return RenderFitted(columns, rows, width, color);
}

std::string AgentsBlock(std::span<const AgentSummary> agents, size_t width, size_t rows,
                        bool color) {
  if (agents.empty()) return "no agent has connected\n";
  const size_t most = rows > 3 ? rows - 3 : 1;  // heading, the rest in words, the cursor
  const std::span<const AgentSummary> shown = agents.first(std::min(most, agents.size()));
  std::string block = AgentsTable(shown, width, color);
  if (shown.size() < agents.size()) {
    block += fmt::format("and {} more\n", agents.size() - shown.size());
  }
  return block;
}

size_t RowsOf(std::string_view text, size_t columns) {
  size_t rows = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t width = DisplayWidth(text.substr(at, end - at));
    rows += std::max<size_t>(1, (width + columns - 1) / columns);
    at = end + 1;
  }
  return rows;
}

std::string AgentLine(const AgentSummary& agent) {
  std::string line = fmt::format("{} {}: {}, stacks {}", agent.inventory.node, StateText(agent),
                                 DevicesText(agent), StacksText(agent.inventory));
  const char* before = "; runs ";
  for (const HeldCell& held : agent.held) line += std::exchange(before, "; ") + HeldText(held);
  return Printable(line);
}

std::vector<std::string> AgentChanges(std::span<const AgentSummary> before,
                                      std::span<const AgentSummary> after) {
  const auto find = [](std::span<const AgentSummary> list, const std::string& node) {
    return std::find_if(list.begin(), list.end(),
                        [&](const AgentSummary& each) { return each.inventory.node == node; });
  };
  std::vector<std::string> lines;
  for (const AgentSummary& agent : after) {
    const auto known = find(before, agent.inventory.node);
    std::string line = AgentLine(agent);
    if (known == before.end() || AgentLine(*known) != line) lines.push_back(std::move(line));
  }
  for (const AgentSummary& agent : before) {
    if (find(after, agent.inventory.node) == after.end()) {
      lines.push_back(Printable(agent.inventory.node) + " gone");
    }
  }
  return lines;
}

}  // namespace assay::cli
