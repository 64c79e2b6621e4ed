// assay: the command line of Assay (docs/architecture.md).
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/signals.h"
#include "common/clock/clock.h"
#include "common/net/state_dir.h"
#include "common/status/status.h"

namespace assay::cli {
namespace {

// A descriptor that the caller closed would be given to the next file or socket, and output would
// go there. Standard output opened for reading fails on write, as a closed one should.
void HoldStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
      (void)open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

int PrintConfig(CommandContext& context) {
  context.output.Out(context.args.printed_config);
  context.output.Out(
      fmt::format("# state directory: {}\n# color: {} (terminal, no-color, NO_COLOR, TERM)\n",
                  context.state_dir.empty() ? "none" : Printable(context.state_dir),
                  context.output.out_color() ? "yes" : "no"));
  return kExitOk;
}

int Dispatch(CommandContext& context) {
  if (context.args.print_config) return PrintConfig(context);
  switch (context.args.command) {
    case Command::kPlan:
      return PlanCommand(context);
    case Command::kRun:
      return RunCommand(context);
    case Command::kWatch:
      return WatchCommand(context);
    case Command::kLs:
      return LsCommand(context);
    case Command::kShow:
      return ShowCommand(context);
    case Command::kResults:
      return ResultsCommand(context);
    case Command::kCompare:
      return CompareCommand(context);
    case Command::kAgents:
      return AgentsCommand(context);
    case Command::kDrain:
    case Command::kUndrain:
      return DrainCommand(context);
    case Command::kCancel:
      return CancelCommand(context);
    case Command::kRerun:
      return RerunCommand(context);
    case Command::kExport:
      return ExportCommand(context);
    case Command::kMerge:
      return MergeCommand(context);
    case Command::kReproduce:
      return ReproduceCommand(context);
    case Command::kDoctor:
      return DoctorCommand(context);
    case Command::kCerts:
      return CertsCommand(context);
    case Command::kCompletion:
      break;  // the parser has answered it
    case Command::kVersion:
      return VersionCommand(context);
  }
  return kExitBadInput;
}

// True for commands that never look at a state directory, and so run without HOME.
bool NeedsNoState(const Arguments& args) {
  return args.command == Command::kVersion ||
         // Without one, that is what it finds.
         (args.command == Command::kDoctor && args.node.empty()) ||
         (args.command == Command::kPlan && !args.fleet) ||
         (args.command == Command::kCerts && !args.certs.dir.empty()) || !args.LocalMode();
}

int Main(const std::vector<std::string>& words) {
  const Parsed parsed = ParseArguments(
      words, [](const char* name) -> const char* { return std::getenv(name); }, true);
  const bool no_color = parsed.arguments && parsed.arguments->no_color;
  Output output(STDOUT_FILENO, STDERR_FILENO, WantsColor(STDOUT_FILENO, no_color),
                WantsColor(STDERR_FILENO, no_color));
  int code = parsed.exit_code;
  if (parsed.arguments) {
    // A coordinator that is started on the way reads the same file.
    if (!parsed.arguments->config.empty()) {
      setenv("ASSAY_CONFIG", std::filesystem::absolute(parsed.arguments->config).c_str(), 1);
    }
    const SystemClock clock;
    const auto state_dir = ResolveStateDir(parsed.arguments->state.value);
    CommandContext context{*parsed.arguments, output, clock, state_dir.ok() ? *state_dir : ""};
    if (!state_dir.ok() && !NeedsNoState(*parsed.arguments)) {
      code = FailCommand(context, state_dir.status());
    } else {
      code = Dispatch(context);
    }
  } else {
    output.Out(parsed.out);
    if (!parsed.err.empty()) output.Error(parsed.err);
  }
  absl::Status written = output.out_status();
  // Some file systems tell of a full disk only here.
  if (written.ok() && close(STDOUT_FILENO) != 0 && errno != EBADF && errno != EPIPE) {
    written = ErrnoStatus(errno, "cannot write to standard output");
  }
  if (!written.ok()) {
    output.Error(Message(written));
    if (code == kExitOk) code = kExitBadInput;
  }
  return code;
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  assay::cli::HoldStandardDescriptors();
  assay::cli::IgnoreSigpipe();
  try {
    return assay::cli::Main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (const std::exception& error) {
    // Out of memory, or a library's surprise: a sentence instead of an abort.
    // Not fmt::print, which throws where standard error cannot be written.
    std::fputs(fmt::format("assay: {}\n", error.what()).c_str(), stderr);
    return assay::cli::kExitBadInput;
  }
}
