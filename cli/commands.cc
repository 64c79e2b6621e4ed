#include "cli/commands.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/exit_codes.h"
#include "cli/fitted_table.h"
#include "cli/printable.h"
#include "cli/result_table.h"
#include "common/certs/tls_check.h"
#include "common/matrix/matrix.h"
#include "common/results/csv.h"
#include "common/results/json.h"
#include "common/results/summary.h"
#include "common/results/timestamp.h"
#include "common/status/status.h"
#include "common/text/number_format.h"
#include "common/version.h"

namespace assay::cli {

int FailCommand(CommandContext& context, const absl::Status& status) {
  std::string sentence = Message(status);
  if (sentence.empty()) sentence = "the coordinator gave no reason (" + status.ToString() + ")";
  context.output.Error(sentence);
  return ExitCodeOfError(status);
}

namespace {

// What a user should know of how the coordinator is dialled. What is wrong is told by the dial.
void WarnOfTransport(const CommandContext& context) {
  const auto address = ParseAddress(context.args.coordinator.value);
  if (context.args.LocalMode() || context.args.quiet || !address.ok()) return;
  const Transport& transport = context.args.transport;
  if (transport.insecure && transport.IsOpen(*address)) {
    context.output.Warning(
        fmt::format("--insecure: plain text to {}: all on the way can read and change it",
                    address->ToString()));
  }
  if (!transport.UsesTls(*address)) return;
  const auto now = std::chrono::floor<std::chrono::seconds>(context.clock.WallNow());
  const auto report = CheckTlsFiles(transport.tls, Identity::Kind::kUser, now);
  if (!report.ok()) return;
  for (const std::string& warning : report->warnings) context.output.Warning(warning);
}

}  // namespace

Session MakeSession(const CommandContext& context, int interrupt_fd) {
  ConnectionOptions options;
  options.state_dir = context.state_dir;
  options.coordinator = context.args.coordinator.value;
  options.interrupt_fd = interrupt_fd;
  WarnOfTransport(context);
  options.on_connected = [&context,
                          told = std::string(kVersion)](const CoordinatorInfo& info) mutable {
    if (context.args.quiet || info.version == told) return;
    told = info.version;
    context.output.Warning(fmt::format(
        "the coordinator is version {} and this command {}; use both of one version (one "
        "of the state directory leaves 60 s after its last work)",
        info.version, kVersion));
  };
  return Session(Connection(std::move(options), SystemPorts(context.args.transport)));
}

void PrintResults(CommandContext& context, const RunResults& results) {
  const std::span<const Record> records = results.records;
  Output& output = context.output;
  if (context.args.format == Format::kJson) {
    output.Out(WriteResultsJson(records));
    return;
  }
  if (context.args.format == Format::kCsv) {
    output.Out(WriteResultsCsv(records));
    return;
  }
  output.Out(
      ResultTable(records, TableWidth(output.out_fd()), output.out_color(), results.baseline));
  std::vector<Outcome> outcomes;
  size_t pending = 0;
  bool simulated = false;
  for (const Record& record : records) {
    const auto outcome = OutcomeFromName(record.Text(Field::kOutcome));
    if (outcome) outcomes.push_back(*outcome);
    pending += outcome ? 0 : 1;
    simulated = simulated || record.Flag(Field::kSimulated).value_or(false);
  }
  if (records.empty()) return;
  std::string line = fmt::format("{}: {}", Counted(records.size(), "cell"),
                                 outcomes.empty() ? "" : assay::OutcomeCounts(outcomes));
  if (pending > 0) line += fmt::format("{}{} not done", outcomes.empty() ? "" : ", ", pending);
  if (simulated) line += "; simulated figures, not measured ones";
  output.Out(line + "\n");
}

void PrintNote(CommandContext& context, const std::string& sentence) {
  if (!context.args.quiet) context.output.Err(Printable(sentence) + "\n");
}

std::string DumpJson(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

nlohmann::ordered_json TextOrNull(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

std::string SlicesText(const RunSummary& run) {
  if (run.slices == 0) return "";
  return fmt::format("{} of {}",
                     run.slices_here.empty() ? std::string("none")
                                             : fmt::format("{}", fmt::join(run.slices_here, ", ")),
                     run.slices);
}

std::string TimeText(int64_t unix_ms) {
  if (unix_ms <= 0) return "";
  // Year 9999: what a broken peer sends must not overflow the calendar.
  const int64_t most = int64_t{253'402'300'799'999};
  return FormatTimestamp(WallTime(std::chrono::milliseconds(std::min(unix_ms, most))));
}

absl::StatusOr<std::string> ReadMatrixText(const std::string& file) {
  if (file != "-") return ReadMatrixFile(file);
  std::string text;
  char buffer[65536];
  while (text.size() <= kMaxMatrixBytes) {
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got == 0) return text;
    if (got > 0) {
      text.append(buffer, static_cast<size_t>(got));
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, "cannot read the matrix from standard input");
    }
  }
  return absl::InvalidArgumentError(
      fmt::format("the matrix on standard input is larger than {} bytes", kMaxMatrixBytes));
}

std::string MatrixFileName(const std::string& file) { return file == "-" ? "<stdin>" : file; }

}  // namespace assay::cli
