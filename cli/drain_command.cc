// drain and undrain.
#include <fmt/core.h>
#include <poll.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/agents_text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/printable.h"

namespace assay::cli {
namespace {

// Of a wait for cells that run for minutes.
constexpr std::chrono::milliseconds kDrainPoll{500};

std::string HeldList(const std::vector<HeldCell>& held) {
  std::string text;
  for (const HeldCell& cell : held) text += (text.empty() ? "" : "; ") + HeldText(cell);
  return text;
}

// Where the node's own agent is away, what it held counts as running until its lease has ended.
std::string DrainSentence(const DrainResult& drained) {
  const std::string node = Printable(drained.node);
  if (!drained.held.empty()) {
    return fmt::format("{} is draining; still there: {}", node, HeldList(drained.held));
  }
  return drained.state == "lost"
             ? fmt::format("{} is not connected; it gets no cell when it comes back", node)
             : fmt::format("{} is drained: nothing runs there", node);
}

void PrintDrain(CommandContext& context, const DrainResult& result) {
  if (context.args.format == Format::kJson) {
    context.output.Out(DumpJson({{"node", result.node},
                                 {"state", result.state},
                                 {"draining", context.args.command == Command::kDrain},
                                 {"held", HeldJson(result.held)}}));
  } else if (context.args.command == Command::kDrain) {
    context.output.Out(DrainSentence(result) + "\n");
  } else {
    context.output.Out(fmt::format("{} takes cells again{}\n", Printable(result.node),
                                   result.state == "lost" ? " when it comes back" : ""));
  }
}

// True after a Ctrl-C.
bool Interrupted(const Signals& signals, std::chrono::milliseconds time) {
  pollfd interrupt{signals.interrupt_fd(), POLLIN, 0};
  return poll(&interrupt, 1, static_cast<int>(time.count())) > 0;
}

// Until the node holds nothing; gives the last answer. Cancelled after a Ctrl-C.
absl::StatusOr<DrainResult> WaitUntilDrained(CommandContext& context, Session& session,
                                             Signals& signals, DrainResult result) {
  std::string told;
  while (!result.held.empty()) {
    if (const std::string held = HeldList(result.held); held != told) {
      PrintNote(context, fmt::format("waiting for {}", held));
      told = held;
    }
    if (Interrupted(signals, kDrainPoll)) {
      return absl::CancelledError(fmt::format("stopped waiting; {} goes on draining", result.node));
    }
    const auto agents =
        session.Call([&](Control& control) { return control.ListAgents(result.node); });
    if (!agents.ok()) return agents.status();
    if (agents->empty()) {
      return absl::NotFoundError(fmt::format("the coordinator no longer knows {}", result.node));
    }
    const AgentSummary& agent = agents->front();
    if (!agent.draining) {
      return absl::FailedPreconditionError(
          fmt::format("somebody undrained {} meanwhile, so it takes cells again", result.node));
    }
    result.state = agent.state;
    result.held = agent.held;
  }
  return result;
}

}  // namespace

int DrainCommand(CommandContext& context) {
  const bool on = context.args.command == Command::kDrain;
  Signals signals(-1);
  Session session = MakeSession(context, signals.interrupt_fd());
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  if (const auto agents = WaitForAgents(session); !agents.ok()) {
    return FailCommand(context, agents.status());
  }
  auto result =
      session.Call([&](Control& control) { return control.Drain(context.args.node, on); });
  if (result.ok() && context.args.wait) {
    result = WaitUntilDrained(context, session, signals, *std::move(result));
  }
  if (!result.ok()) return FailCommand(context, result.status());
  PrintDrain(context, *result);
  return kExitOk;
}

}  // namespace assay::cli
