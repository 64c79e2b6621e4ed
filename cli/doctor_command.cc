// doctor: what works here, or on a node, and what to type where it does not; or where a runner does
// not keep the protocol, and what to change.
#include <fmt/core.h>

#include <chrono>

#include "cli/child_report.h"
#include "cli/commands.h"
#include "cli/doctor_table.h"
#include "cli/exit_codes.h"
#include "cli/fitted_table.h"
#include "cli/printable.h"
#include "common/net/sibling.h"
#include "common/status/status.h"

namespace assay::cli {
namespace {

// As long as an agent takes at most (agent/session/doctor_child.h).
constexpr std::chrono::seconds kLocalDoctorLimit{90};

// Its own sentence: a configuration file, an environment variable or a program that it does not
// take.
std::string SaidInstead(const ChildReport& child, const std::string& program) {
  std::string said = PrintableLines(child.errors);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return said.empty() ? program + " ended without a report" : said;
}

absl::StatusOr<DoctorReport> DoctorHere(const CommandContext& context) {
  const auto program = SiblingProgram("assay-agent");
  if (!program.ok()) return absl::UnavailableError(Message(program.status()));
  std::vector<std::string> arguments = {"--doctor"};
  if (!context.state_dir.empty()) {
    arguments.insert(arguments.end(), {"--state", context.state_dir});
  }
  ASSAY_ASSIGN_OR_RETURN(const ChildReport child,
                         ReadChildReport(*program, arguments, "\n}\n", kLocalDoctorLimit));
  absl::StatusOr<DoctorReport> report = ParseDoctorJson(child.output);
  if (report.ok()) return report;
  return absl::FailedPreconditionError(SaidInstead(child, *program));
}

absl::StatusOr<DoctorReport> DoctorRunner(const CommandContext& context) {
  const auto program = SiblingProgram("assay-agent");
  if (!program.ok()) return absl::UnavailableError(Message(program.status()));
  const std::string cell_seconds = fmt::format("{}", context.args.cell_seconds);
  // As many cells as it runs, each up to its limit.
  const std::chrono::seconds limit{20 * context.args.cell_seconds + kLocalDoctorLimit.count()};
  ASSAY_ASSIGN_OR_RETURN(
      const ChildReport child,
      ReadChildReport(*program,
                      {"--doctor-runner", context.args.runner, "--cell-seconds", cell_seconds},
                      "\n}\n", limit));
  absl::StatusOr<DoctorReport> report = ParseDoctorJson(child.output);
  if (report.ok()) return report;
  return absl::InvalidArgumentError(SaidInstead(child, *program));
}

absl::StatusOr<DoctorReport> DoctorThere(Session& session, const std::string& node) {
  ASSAY_RETURN_IF_ERROR(WaitForAgents(session).status());
  return session.Call([&](Control& control) { return control.Doctor(node); });
}

}  // namespace

int DoctorCommand(CommandContext& context) {
  absl::StatusOr<DoctorReport> report = absl::UnknownError("");
  if (!context.args.runner.empty()) {
    report = DoctorRunner(context);
  } else if (context.args.node.empty()) {
    report = DoctorHere(context);
  } else {
    Session session = MakeSession(context);
    if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
    report = DoctorThere(session, context.args.node);
  }
  if (!report.ok()) return FailCommand(context, report.status());
  if (context.args.format == Format::kJson) {
    context.output.Out(WriteDoctorJson(*report));
  } else {
    // Sentences are broken into lines of a readable length in a file too.
    constexpr size_t kFileWidth = 100;
    const size_t width = TableWidth(context.output.out_fd());
    context.output.Out(
        DoctorTable(*report, width == kNoLimit ? kFileWidth : width, context.output.out_color(),
                    context.args.runner.empty() ? RemedyKind::kCommand : RemedyKind::kSentence));
  }
  return report->Worst() == CheckState::kBad ? kExitSomethingBad : kExitOk;
}

}  // namespace assay::cli
