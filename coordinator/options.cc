#include "coordinator/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

#include "common/config/settings.h"
#include "common/net/state_dir.h"
#include "common/status/status.h"
#include "common/version.h"

namespace assay {
namespace {

constexpr double kLocalIdleExitSeconds = 60;
constexpr double kMostIdleExitSeconds = 365.0 * 86'400;
// Under it a loaded node loses its lease to scheduling; over it nobody notices a dead one.
constexpr double kLeastHeartbeatSeconds = 0.5;
constexpr double kMostHeartbeatSeconds = 600;

absl::StatusOr<CoordinatorOptions> FromSettings(const Settings& settings) {
  CoordinatorOptions options;
  options.listen = settings.Text("listen");
  options.local = settings.Flag("local");
  options.transport = TransportOf(settings);
  options.idle_exit_seconds =
      settings.Seconds("idle-exit", options.local ? kLocalIdleExitSeconds : 0);
  options.agent_args = settings.List("agent-arg");
  options.log_level = settings.Text("log-level");
  options.config_file = settings.file();
  if (options.idle_exit_seconds > kMostIdleExitSeconds) {
    return absl::InvalidArgumentError("idle-exit takes seconds from 0 (never) to a year");
  }
  options.heartbeat_seconds = settings.Seconds("heartbeat", options.heartbeat_seconds);
  if (options.heartbeat_seconds < kLeastHeartbeatSeconds ||
      options.heartbeat_seconds > kMostHeartbeatSeconds) {
    return absl::InvalidArgumentError(
        fmt::format("heartbeat takes seconds from {:g} to {:g}, not {:g}", kLeastHeartbeatSeconds,
                    kMostHeartbeatSeconds, options.heartbeat_seconds));
  }
  ASSAY_ASSIGN_OR_RETURN(options.state, ResolveStateDir(settings.Text("state")));
  return options;
}

}  // namespace

absl::StatusOr<CoordinatorOptions> ParseCoordinatorOptions(int argc, const char* const* argv) {
  CLI::App app("Schedules benchmark cells, keeps their results, serves users and agents.",
               "assay-coordinator");
  app.set_version_flag("--version", std::string("assay-coordinator ") + kVersion);
  std::map<std::string, std::string> texts;
  const auto add = [&](const std::string& name, const char* doc) {
    return app.add_option("--" + name, texts[name], doc);
  };
  add("config", "Configuration file (ASSAY_CONFIG; default: config.yaml of the state directory)");
  add("state", "State directory (ASSAY_STATE)");
  add("listen", "unix:/path, host:port or [ipv6]:port (ASSAY_LISTEN)");
  add("tls-ca", "Certificate of the authority that agents and users are signed by (ASSAY_TLS_CA)");
  add("tls-cert", "Certificate of this coordinator, by `assay certs` (ASSAY_TLS_CERT)");
  add("tls-key", "Its key (ASSAY_TLS_KEY)");
  add("idle-exit", "Leave after so many seconds without work and clients; 0: never");
  add("heartbeat",
      "Seconds between two words of an idle agent; three of them are its lease (ASSAY_HEARTBEAT)");
  add("log-level", "debug, info, warn or error (ASSAY_LOG_LEVEL)");
  bool local = false;
  const CLI::Option* local_flag =
      app.add_flag("--local", local, "Run an agent of this machine as a child (ASSAY_LOCAL)");
  bool insecure = false;
  const CLI::Option* insecure_flag =
      app.add_flag("--insecure", insecure,
                   "Plain text for other machines too: everyone there may do everything");
  std::vector<std::string> agent_args;
  app.add_option("--agent-arg", agent_args, "One more argument of the local agent")
      ->allow_extra_args(false);
  bool print_config = false;
  app.add_flag("--print-config", print_config,
               "Print every value and where it came from, and leave");
  CoordinatorOptions printed;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    printed.print = std::string(version.what()) + "\n";
    return printed;
  } catch (const CLI::Success&) {
    printed.print = app.help();
    return printed;
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  Settings settings(Program::kCoordinator, [](const char* name) { return std::getenv(name); });
  for (const auto& [name, value] : texts) {
    if (app.get_option("--" + name)->count() > 0) settings.SetFlag(name, {value});
  }
  if (local_flag->count() > 0) settings.SetFlag("local", {local ? "true" : "false"});
  if (insecure_flag->count() > 0) settings.SetFlag("insecure", {insecure ? "true" : "false"});
  if (!agent_args.empty()) settings.SetFlag("agent-arg", agent_args);
  ASSAY_RETURN_IF_ERROR(settings.Resolve());
  ASSAY_ASSIGN_OR_RETURN(CoordinatorOptions options, FromSettings(settings));
  if (print_config) {
    options.print = settings.Printed();
  } else if (!options.local && options.listen.empty()) {
    return absl::InvalidArgumentError(
        "say where to listen: --listen unix:/path or host:port, or --local for this machine alone");
  }
  return options;
}

}  // namespace assay
