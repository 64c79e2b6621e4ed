// ls, agents, results and version.
#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/fitted_table.h"
#include "cli/printable.h"
#include "common/results/csv.h"
#include "common/results/json.h"
#include "common/status/status.h"
#include "common/text/number_format.h"
#include "common/version.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

// Bytes that are not UTF-8 become U+FFFD instead of an exception.
std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

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
          {"held_attempts", agent.held_attempts}};
}

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

// A coordinator that this command has just started knows its agent only some moments later.
absl::StatusOr<std::vector<AgentSummary>> WaitForAgents(Session& session) {
  constexpr std::chrono::seconds kMostWait{10};
  const BootTime deadline = BootClock::now() + kMostWait;
  while (true) {
    auto agents = session.Call([](Control& control) { return control.ListAgents(); });
    if (!agents.ok() || !agents->empty() || !session.connection().local() ||
        BootClock::now() >= deadline) {
      return agents;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// Row by row: a run of 100,000 cells is some hundred MiB as records. What was written before an
// error stays, and the exit code says that it is not all.
int StreamResults(CommandContext& context, Session& session) {
  constexpr size_t kPieceBytes = 64 << 10;
  std::vector<Field> fields;
  for (const FieldInfo& info : AllFields()) fields.push_back(info.field);
  const bool json = context.args.format == Format::kJson;
  std::string piece = json ? "[" : CsvHeader(fields);
  bool any = false;
  const auto take = [&](const Record& record) {
    piece += json ? (any ? ",\n" : "\n") + RecordToJson(record, fields) : CsvLine(record, fields);
    any = true;
    if (piece.size() < kPieceBytes) return;
    context.output.Out(piece);
    piece.clear();
  };
  absl::Status status = session.control().EachResult(context.args.run, take);
  // As Session::Call does, but not once rows were written.
  if (absl::IsUnavailable(status) && !any) {
    status = session.Open();
    if (status.ok()) status = session.control().EachResult(context.args.run, take);
  }
  // Before the first piece nothing was said yet: an unknown run leaves standard output empty.
  if (!status.ok() && !any) return FailCommand(context, status);
  if (json && status.ok()) piece += any ? "\n]\n" : "]\n";
  context.output.Out(piece);
  return status.ok() ? kExitOk : FailCommand(context, status);
}

}  // namespace

int LsCommand(CommandContext& context) {
  Session session = MakeSession(context);
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  const auto runs = session.Call([](Control& control) { return control.ListRuns(); });
  if (!runs.ok()) return FailCommand(context, runs.status());
  if (context.args.format == Format::kJson) {
    Json list = Json::array();
    for (const RunSummary& run : *runs) {
      list.push_back({{"id", run.id},
                      {"name", run.name},
                      {"state", run.state},
                      {"cells", run.cells},
                      {"ok", run.ok},
                      {"failed", run.failed},
                      {"started_at", TextOrNull(TimeText(run.started_at_unix_ms))}});
    }
    context.output.Out(Dump({{"runs", list}}));
    return kExitOk;
  }
  if (runs->empty()) {
    PrintNote(context, fmt::format("no runs{}; `assay run FILE` makes one",
                                   context.args.LocalMode() ? " in " + context.state_dir : ""));
    return kExitOk;
  }
  const std::vector<FittedColumn> columns = {
      {"run", Align::kLeft, 0, 0, ""},     {"name", Align::kLeft, 12, 0, ""},
      {"state", Align::kLeft, 0, 0, ""},   {"cells", Align::kRight, 0, 0, ""},
      {"done", Align::kRight, 0, 2, ""},   {"ok", Align::kRight, 0, 0, ""},
      {"failed", Align::kRight, 0, 0, ""}, {"started", Align::kLeft, 0, 1, ""}};
  std::vector<FittedRow> rows;
  for (const RunSummary& run : *runs) {
    std::string started = TimeText(run.started_at_unix_ms);
    // Seconds are enough for a person.
    if (const size_t dot = started.find('.'); dot != std::string::npos) {
      started = started.substr(0, dot) + "Z";
    }
    rows.push_back(
        {{run.id, run.name, run.state, fmt::format("{}", run.cells), fmt::format("{}", run.done),
          fmt::format("{}", run.ok), fmt::format("{}", run.failed), started},
         run.failed > 0 ? Color::kRed : Color::kNone});
  }
  context.output.Out(
      RenderFitted(columns, rows, TableWidth(context.output.out_fd()), context.output.out_color()));
  return kExitOk;
}

int AgentsCommand(CommandContext& context) {
  Session session = MakeSession(context);
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  const auto agents = WaitForAgents(session);
  if (!agents.ok()) return FailCommand(context, agents.status());
  const bool insecure = session.connection().info().insecure;
  if (context.args.format == Format::kJson) {
    Json list = Json::array();
    for (const AgentSummary& agent : *agents) list.push_back(AgentJson(agent));
    context.output.Out(Dump({{"agents", list}, {"insecure", insecure}}));
    return kExitOk;
  }
  if (insecure) {
    context.output.Warning(
        "this coordinator runs with --insecure: everyone who can reach it may read, run and change "
        "everything");
  }
  if (agents->empty()) {
    PrintNote(context, "no agent has connected");
    return kExitOk;
  }
  const std::vector<FittedColumn> columns = {{"node", Align::kLeft, 10, 0, ""},
                                             {"state", Align::kLeft, 0, 0, ""},
                                             {"devices", Align::kLeft, 24, 0, ""},
                                             {"stacks", Align::kLeft, 16, 0, ""},
                                             {"runs now", Align::kRight, 0, 1, ""}};
  std::vector<FittedRow> rows;
  for (const AgentSummary& agent : *agents) {
    rows.push_back({{agent.inventory.node, agent.state, DevicesText(agent),
                     StacksText(agent.inventory), fmt::format("{}", agent.held_attempts.size())},
                    agent.state == "up" ? Color::kNone : Color::kYellow});
  }
  context.output.Out(
      RenderFitted(columns, rows, TableWidth(context.output.out_fd()), context.output.out_color()));
  for (const AgentSummary& agent : *agents) PrintAgentWarnings(context, agent);
  return kExitOk;
}

int ResultsCommand(CommandContext& context) {
  Session session = MakeSession(context);
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  if (context.args.format != Format::kTable) return StreamResults(context, session);
  const auto records =
      session.Call([&](Control& control) { return control.GetResults(context.args.run); });
  if (!records.ok()) return FailCommand(context, records.status());
  PrintResults(context, *records);
  return kExitOk;
}

int VersionCommand(CommandContext& context) {
  if (context.args.format == Format::kJson) {
    context.output.Out(Dump({{"version", kVersion},
                             {"fleet_protocol", kFleetProtocol},
                             {"runner_protocol", kRunnerProtocol},
                             {"result_schema", kResultSchema},
                             {"rules_version", kRulesVersion}}));
    return kExitOk;
  }
  context.output.Out(
      fmt::format("assay {}\nfleet protocol {}\nrunner protocol {}\nresult schema {}\nrules {}\n",
                  kVersion, kFleetProtocol, kRunnerProtocol, kResultSchema, kRulesVersion));
  return kExitOk;
}

}  // namespace assay::cli
