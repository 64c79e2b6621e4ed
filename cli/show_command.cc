// show: a run in short, or one cell in full.
#include <fmt/core.h>
#include <poll.h>

#include <chrono>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/result_table.h"
#include "common/results/outcome.h"
#include "common/results/rules.h"
#include "common/status/status.h"

namespace assay::cli {
namespace {

std::string Indented(const std::string& text, const char* indent) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += indent + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

// The first message of Watch is the whole state.
absl::StatusOr<RunUpdate> FirstUpdate(Control& control, const std::string& run) {
  const std::unique_ptr<RunWatch> watch = control.Watch(run);
  constexpr std::chrono::seconds kMostWait{30};
  const BootTime deadline = BootClock::now() + kMostWait;
  while (BootClock::now() < deadline) {
    if (auto update = watch->Take()) return *update;
    if (const auto end = watch->Ended()) {
      return end->ok() ? absl::UnavailableError("the coordinator said nothing about the run")
                       : *end;
    }
    pollfd ready{watch->ready_fd(), POLLIN, 0};
    poll(&ready, 1, 200);
  }
  return absl::DeadlineExceededError("the coordinator did not answer within 30 s");
}

int ShowRun(CommandContext& context, Session& session) {
  const auto update =
      session.Call([&](Control& control) { return FirstUpdate(control, context.args.run); });
  if (!update.ok()) return FailCommand(context, update.status());
  const auto results =
      session.Call([&](Control& control) { return control.GetResults(update->run); });
  if (!results.ok()) return FailCommand(context, results.status());
  std::string out =
      fmt::format("run {}  {}  {}\n{} of {} cells done", Printable(update->run),
                  Printable(update->name), Printable(update->state), update->done, update->cells);
  if (!update->outcomes.empty()) out += ": " + CountsText(update->outcomes);
  out += "\n";
  if (!update->waiting_for.empty() && update->active.empty() && !update->final) {
    out += fmt::format("waiting: {}\n", Printable(update->waiting_for));
  }
  for (const CellProgress& cell : update->active) {
    out += fmt::format("now: cell {} ({}): {}\n", cell.cell, Printable(cell.label),
                       Printable(cell.phase));
  }
  size_t others = 0;
  for (const Record& record : results->records) {
    const auto outcome = OutcomeFromName(record.Text(Field::kOutcome));
    const bool invalid = record.Text(Field::kVerdict) == "invalid";
    if (!outcome || (*outcome == Outcome::kOk && !invalid)) continue;
    if (others++ == 0) out += "\nnot ok:\n";
    out += Indented(
        fmt::format("cell {} ({}): {}{}{}{}{}", record.Integer(Field::kCell).value_or(0),
                    CellLabel(record), OutcomeName(*outcome), invalid ? " but invalid" : "",
                    record.Has(Field::kReason) ? ", " + Printable(record.Text(Field::kReason)) : "",
                    record.Has(Field::kMessage) ? ": " : "",
                    Printable(record.Text(Field::kMessage))),
        "  ");
  }
  if (others > 0) {
    out += fmt::format("\n`assay show {} CELL` has the attempts and the log of one cell\n",
                       Printable(update->run));
  }
  context.output.Out(out);
  return kExitOk;
}

std::string AttemptText(const AttemptDetail& attempt) {
  const std::string state =
      attempt.outcome ? std::string(OutcomeName(*attempt.outcome)) : Printable(attempt.state);
  std::string out =
      fmt::format("attempt {} on {}: {}", attempt.number,
                  attempt.node.empty() ? "no node yet" : Printable(attempt.node), state);
  if (!attempt.reason.empty()) out += ", " + Printable(attempt.reason);
  if (!attempt.counted && attempt.outcome) out += " (not counted)";
  out += "\n";
  if (!attempt.message.empty()) out += "  " + Printable(attempt.message) + "\n";
  out += fmt::format("  id {}", Printable(attempt.attempt));
  if (attempt.started_at_unix_ms > 0) {
    out += ", started " + TimeText(attempt.started_at_unix_ms);
  }
  out += "\n";
  for (const std::string& uuid : attempt.gpu_uuids) {
    out += fmt::format("  device {}\n", Printable(uuid));
  }
  if (!attempt.log_tail.empty()) {
    out += "  the end of its log:\n" + Indented(PrintableLines(attempt.log_tail), "    | ");
  }
  return out;
}

int ShowCell(CommandContext& context, Session& session) {
  const auto detail = session.Call(
      [&](Control& control) { return control.GetCell(context.args.run, *context.args.cell); });
  if (!detail.ok()) return FailCommand(context, detail.status());
  const Record& record = detail->record;
  std::string out = fmt::format("cell {} of run {}: {}\n", detail->cell, Printable(detail->run),
                                CellLabel(record));
  const std::string outcome = Printable(record.Text(Field::kOutcome));
  out += outcome.empty() ? "not done" : outcome;
  if (record.Has(Field::kReason)) out += ", " + Printable(record.Text(Field::kReason));
  if (record.Has(Field::kMessage)) out += ": " + Printable(record.Text(Field::kMessage));
  out += "\n";
  const Verdict verdict = Judge(record);
  for (const std::string& fault : verdict.faults) {
    out += fmt::format("invalid: {}\n", Printable(fault));
  }
  for (const std::string& note : verdict.notes) out += fmt::format("{}\n", Printable(note));
  out += "\n" + RecordText(record);
  for (const AttemptDetail& attempt : detail->attempts) out += "\n" + AttemptText(attempt);
  context.output.Out(out);
  return kExitOk;
}

}  // namespace

int ShowCommand(CommandContext& context) {
  Session session = MakeSession(context);
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  return context.args.cell ? ShowCell(context, session) : ShowRun(context, session);
}

}  // namespace assay::cli
