#include "cli/agents_watch.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/agents_text.h"
#include "cli/exit_codes.h"
#include "cli/fitted_table.h"
#include "cli/printable.h"
#include "common/results/timestamp.h"
#include "common/status/status.h"

namespace assay::cli {
namespace {

// One list of a fleet of thousands is a megabyte: no more often than people look.
constexpr std::chrono::milliseconds kAgentsPoll{1'000};
// A restart of the coordinator takes a few seconds.
constexpr std::chrono::seconds kMostAway{30};

class FleetWatch {
 public:
  FleetWatch(CommandContext& context, Session& session, Signals& signals, bool terminal)
      : context_(context), session_(session), signals_(signals), terminal_(terminal) {}

  int Run() {
    heard_ = context_.clock.Now();
    if (terminal_) signals_.HideCursor();
    int code = kExitOk;
    do {
      auto agents = session_.Call([](Control& control) { return control.ListAgents(""); });
      if (agents.ok()) {
        heard_ = context_.clock.Now();
        away_.clear();
        Show(*std::move(agents));
      } else if (absl::IsCancelled(agents.status())) {
        break;  // Ctrl-C while it was dialled again
      } else if (!IsLost(agents.status()) || context_.clock.Now() - heard_ >= kMostAway) {
        Forget();
        code = FailCommand(context_, agents.status());
        break;
      } else {
        Away(Message(agents.status()));
      }
    } while (Wait());
    Forget();
    if (terminal_) signals_.ShowCursor();
    return code;
  }

 private:
  // False after a Ctrl-C, or once nobody reads standard output any more.
  bool Wait() const {
    pollfd ready[2] = {{signals_.interrupt_fd(), POLLIN, 0}, {context_.output.out_fd(), 0, 0}};
    const int got = poll(ready, 2, static_cast<int>(kAgentsPoll.count()));
    return got <= 0 || (ready[0].revents == 0 && (ready[1].revents & (POLLERR | POLLNVAL)) == 0);
  }

  void Show(std::vector<AgentSummary> agents) {
    if (terminal_) {
      Draw(agents);
    } else if (context_.args.format == Format::kJson) {
      PrintJson(agents);
    } else {
      const std::string now = FormatTimestamp(context_.clock.WallNow());
      for (const std::string& line : AgentChanges(agents_, agents)) {
        context_.output.Out(fmt::format("{} {}\n", now, line));
      }
    }
    agents_ = std::move(agents);
  }

  void PrintJson(const std::vector<AgentSummary>& agents) {
    std::map<std::string, std::string> now;
    for (const AgentSummary& agent : agents) {
      nlohmann::ordered_json json = AgentJson(agent);
      const std::string text =
          json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
      json.erase("last_seen");  // changes with each heartbeat
      std::string& said = now[agent.inventory.node];
      said = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
      const auto before = printed_.find(agent.inventory.node);
      if (before == printed_.end() || before->second != said) context_.output.Out(text);
    }
    printed_ = std::move(now);
  }

  void Away(const std::string& why) {
    if (away_ == why) return;
    away_ = why;
    Forget();
    PrintNote(context_, fmt::format("the coordinator is away ({}); trying again", why));
  }

  void Draw(const std::vector<AgentSummary>& agents) {
    const int fd = context_.output.out_fd();
    const TerminalSize size = SizeOf(fd);
    const auto rows = static_cast<size_t>(std::max(size.rows, 1));
    const auto columns = static_cast<size_t>(std::max(size.columns, 1));
    const std::string block = AgentsBlock(agents, TableWidth(fd), rows, false);
    const bool gone = signals_.TakeBlockGone();
    if (block == block_ && !gone) return;
    // By the width of now: a terminal wraps its old lines anew when it is resized.
    std::string erase;
    if (!block_.empty() && !gone) {
      erase = fmt::format("\r\x1B[{}A\x1B[J", RowsOf(block_, columns));
    }
    const bool color = context_.output.out_color();
    context_.output.Out(erase + (color ? AgentsBlock(agents, TableWidth(fd), rows, true) : block));
    block_ = block;
    signals_.SetBlockLines(RowsOf(block, columns));
  }

  // What is on the screen stays there.
  void Forget() {
    block_.clear();
    signals_.SetBlockLines(0);
  }

  CommandContext& context_;
  Session& session_;
  Signals& signals_;
  const bool terminal_;
  BootTime heard_;
  std::string away_;  // why; empty while it answers
  std::vector<AgentSummary> agents_;
  std::map<std::string, std::string> printed_;  // by node
  std::string block_;                           // on the screen now, without its colours
};

}  // namespace

int WatchAgents(CommandContext& context, Session& session, Signals& signals, bool terminal) {
  return FleetWatch(context, session, signals, terminal).Run();
}

}  // namespace assay::cli
