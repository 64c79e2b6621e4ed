// The commands of `assay`: each takes the checked arguments and gives the exit code.
//
// Results go to standard output, everything else to standard error, errors last. Thread rule: main
// thread, one command a process.
#ifndef ASSAY_CLI_COMMANDS_H_
#define ASSAY_CLI_COMMANDS_H_

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "cli/connection.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/signals.h"
#include "common/clock/clock.h"
#include "common/results/record.h"

namespace assay::cli {

struct CommandContext {
  const Arguments& args;
  Output& output;
  const Clock& clock;
  std::string state_dir;  // absolute
};

int RunCommand(CommandContext& context);
int RerunCommand(CommandContext& context);
int WatchCommand(CommandContext& context);
int CancelCommand(CommandContext& context);
int PlanCommand(CommandContext& context);
int LsCommand(CommandContext& context);
int AgentsCommand(CommandContext& context);
int DrainCommand(CommandContext& context);  // and undrain
int ShowCommand(CommandContext& context);
int ResultsCommand(CommandContext& context);
int CompareCommand(CommandContext& context);
int ExportCommand(CommandContext& context);
int MergeCommand(CommandContext& context);
int ReproduceCommand(CommandContext& context);
int DoctorCommand(CommandContext& context);
int CertsCommand(CommandContext& context);
int VersionCommand(CommandContext& context);

// Prints the sentence of `status` and gives its exit code.
int FailCommand(CommandContext& context, const absl::Status& status);

// A session that is not open yet. `interrupt_fd` as in ConnectionOptions.
Session MakeSession(const CommandContext& context, int interrupt_fd = -1);

// Writes records as --format says; the table with its counts.
void PrintResults(CommandContext& context, const RunResults& results);

// Standard error, unless --quiet.
void PrintNote(CommandContext& context, const std::string& sentence);

// With line feed. Bytes that are not UTF-8 become U+FFFD instead of an exception.
std::string DumpJson(const nlohmann::ordered_json& json);
// null for "".
nlohmann::ordered_json TextOrNull(const std::string& text);

// The list of agents. In local mode waits up to 10 s for one to be there, since a coordinator that
// this command has just started knows its agent only some moments later.
absl::StatusOr<std::vector<AgentSummary>> WaitForAgents(Session& session);

// "1, 2 of 4" for a sliced run, else empty.
std::string SlicesText(const RunSummary& run);

// ISO 8601, or "" for 0.
std::string TimeText(int64_t unix_ms);

// The matrix text of `file`, or of standard input for "-".
absl::StatusOr<std::string> ReadMatrixText(const std::string& file);
// How the matrix is called in diagnostics.
std::string MatrixFileName(const std::string& file);

}  // namespace assay::cli

#endif  // ASSAY_CLI_COMMANDS_H_
