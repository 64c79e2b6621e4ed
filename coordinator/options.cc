#include "coordinator/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>

#include "common/net/state_dir.h"
#include "common/status/status.h"
#include "common/version.h"

namespace assay {
namespace {

constexpr double kLocalIdleExitSeconds = 60;
constexpr double kMostIdleExitSeconds = 365.0 * 86'400;

struct Setting {
  CLI::Option* option;
  const char* name;
  const char* environment;  // null: none
  std::string source = "default";
};

// Fills in from the environment what no flag has set, and notes where each value came from.
void ApplyEnvironment(std::vector<Setting>& settings) {
  for (Setting& setting : settings) {
    if (setting.option->count() > 0) {
      setting.source = fmt::format("flag --{}", setting.name);
      continue;
    }
    const char* value = setting.environment == nullptr ? nullptr : std::getenv(setting.environment);
    if (value == nullptr || *value == '\0') continue;
    setting.option->add_result(value);
    setting.option->run_callback();
    setting.source = setting.environment;
  }
}

std::string PrintedConfig(const CoordinatorOptions& options, const std::vector<Setting>& settings) {
  const auto source = [&](std::string_view name) -> std::string {
    for (const Setting& setting : settings) {
      if (setting.name == name) return setting.source;
    }
    return "default";
  };
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{} = {}  # {}\n", name, value, source(name));
  };
  line("state", options.state);
  line("listen", options.listen);
  line("local", options.local ? "true" : "false");
  line("idle-exit", fmt::format("{}", options.idle_exit_seconds));
  line("agent-arg", fmt::format("{}", fmt::join(options.agent_args, " ")));
  line("log-level", options.log_level);
  return text;
}

absl::Status Check(CoordinatorOptions& options, bool idle_given) {
  if (!idle_given) options.idle_exit_seconds = options.local ? kLocalIdleExitSeconds : 0;
  if (!std::isfinite(options.idle_exit_seconds) || options.idle_exit_seconds < 0 ||
      options.idle_exit_seconds > kMostIdleExitSeconds) {
    return absl::InvalidArgumentError("--idle-exit takes seconds from 0 (never) to a year");
  }
  if (!options.local && options.listen.empty()) {
    return absl::InvalidArgumentError(
        "say where to listen: --listen unix:/path or host:port, or --local for this machine alone");
  }
  ASSAY_ASSIGN_OR_RETURN(options.state, ResolveStateDir(options.state));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CoordinatorOptions> ParseCoordinatorOptions(int argc, const char* const* argv) {
  CoordinatorOptions options;
  options.log_level = "info";
  bool print_config = false;
  CLI::App app("Schedules benchmark cells, keeps their results, serves users and agents.",
               "assay-coordinator");
  app.set_version_flag("--version", std::string("assay-coordinator ") + kVersion);
  std::vector<Setting> settings = {
      {app.add_option("--state", options.state, "State directory"), "state", "ASSAY_STATE"},
      {app.add_option("--listen", options.listen, "unix:/path, host:port or [ipv6]:port"), "listen",
       "ASSAY_LISTEN"},
      {app.add_flag("--local", options.local, "Run an agent of this machine as a child"), "local",
       "ASSAY_LOCAL"},
      {app.add_option("--idle-exit", options.idle_exit_seconds,
                      "Leave after so many seconds without work and clients; 0: never"),
       "idle-exit", "ASSAY_IDLE_EXIT"},
      {app.add_option("--agent-arg", options.agent_args, "One more argument of the local agent")
           ->allow_extra_args(false),
       "agent-arg", nullptr},
      {app.add_option("--log-level", options.log_level, "debug, info, warn or error"), "log-level",
       "ASSAY_LOG_LEVEL"},
  };
  app.add_flag("--print-config", print_config,
               "Print every value and where it came from, and leave");
  try {
    app.parse(argc, argv);
    ApplyEnvironment(settings);
  } catch (const CLI::CallForVersion& version) {
    options.print = std::string(version.what()) + "\n";
    return options;
  } catch (const CLI::Success&) {
    options.print = app.help();
    return options;
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  ASSAY_RETURN_IF_ERROR(Check(options, settings[3].source != "default"));
  if (print_config) options.print = PrintedConfig(options, settings);
  return options;
}

}  // namespace assay
