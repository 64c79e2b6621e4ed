// run, rerun, watch and cancel: the commands that follow a run.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/follow.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/result_table.h"
#include "common/ids/ids.h"
#include "common/matrix/matrix.h"
#include "common/results/outcome.h"
#include "common/results/rules.h"
#include "common/results/summary.h"
#include "common/status/status.h"

namespace assay::cli {
namespace {

constexpr size_t kMostFailures = 10;  // told one by one at the end; `show` has all

// Where the block is drawn: the terminal of standard error, or -1.
int BlockTerminal(const CommandContext& context) {
  const int fd = context.output.err_fd();
  return !context.args.quiet && IsTerminal(fd) ? fd : -1;
}

std::unique_ptr<ProgressView> MakeView(CommandContext& context, Signals& signals, int terminal) {
  const TextSink sink = [&output = context.output](std::string_view text) { output.Err(text); };
  if (context.args.quiet) return std::make_unique<QuietView>(sink, context.clock);
  if (terminal < 0) return std::make_unique<LineView>(sink, context.clock);
  return std::make_unique<BlockView>(
      sink, [terminal] { return SizeOf(terminal); }, context.output.err_color(), context.clock,
      BlockKeeper{[&signals](size_t lines) { signals.SetBlockLines(lines); },
                  [&signals] { return signals.TakeBlockGone(); }});
}

void PrintRunLine(CommandContext& context, const std::string& run) {
  const std::string line = fmt::format("run {}\n", Printable(run));
  // A document on standard output must be a document.
  if (context.args.format == Format::kTable) {
    context.output.Out(line);
  } else {
    context.output.Err(line);
  }
}

// How the cells of a run ended.
struct Ends {
  std::vector<Outcome> outcomes;
  size_t invalid = 0;
  std::vector<std::string> failures;  // a sentence each of what failed or is invalid
  std::string first_other;            // of the first that is not ok
};

Ends EndsOf(std::span<const Record> records) {
  Ends ends;
  for (const Record& record : records) {
    const auto outcome = OutcomeFromName(record.Text(Field::kOutcome));
    if (!outcome) continue;
    ends.outcomes.push_back(*outcome);
    const std::string cell =
        fmt::format("cell {} ({})", record.Integer(Field::kCell).value_or(0), CellLabel(record));
    if (*outcome == Outcome::kOk) {
      const Verdict verdict = Judge(record);
      if (verdict.faults.empty()) continue;
      ++ends.invalid;
      ends.failures.push_back(fmt::format("{}: invalid: {}", cell, Printable(verdict.faults[0])));
      continue;
    }
    const std::string why = fmt::format(
        "{}: {}, {}{}{}", cell, OutcomeName(*outcome), Printable(record.Text(Field::kReason)),
        record.Has(Field::kMessage) ? ": " : "", Printable(record.Text(Field::kMessage)));
    if (IsFailure(*outcome)) ends.failures.push_back(why);
    if (ends.first_other.empty()) ends.first_other = why;
  }
  return ends;
}

// What went wrong, last and on standard error; the exit code.
int PrintEnd(CommandContext& context, const Session& session, const std::string& run,
             std::span<const Record> records, const RunUpdate& last) {
  const Ends ends = EndsOf(records);
  const std::vector<std::string>& failures = ends.failures;
  int code = RunExitCode(ends.outcomes, ends.invalid);
  if (last.state == "cancelled") code = kExitCancelled;
  for (size_t i = 0; i < failures.size() && i < kMostFailures; ++i) {
    context.output.Error(failures[i]);
  }
  if (failures.size() > kMostFailures) {
    context.output.Error(fmt::format("and {} more; `assay show {}` has all",
                                     failures.size() - kMostFailures, Printable(run)));
  }
  if (code == kExitNothingRun) {
    std::string why = ends.invalid > 0           ? "no figure is valid"
                      : !failures.empty()        ? "no cell ended ok"
                      : ends.first_other.empty() ? last.waiting_for
                                                 : ends.first_other;
    if (why.empty()) why = "no cell was bound to a target; `assay agents` shows what there is";
    // Why this machine's own agent did not come stands nowhere else.
    if (records.empty() && session.connection().local()) {
      const std::string tail = LogTail(context.state_dir, 0);
      if (!tail.empty()) {
        context.output.Error(fmt::format("the end of {}/coordinator.log:\n{}", context.state_dir,
                                         PrintableLines(tail)));
      }
    }
    context.output.Error(fmt::format("nothing was measured: {}", why));
  } else if (code == kExitCancelled) {
    context.output.Error(fmt::format("run {} was cancelled", Printable(run)));
  }
  return code;
}

// Of a command that a Ctrl-C or its like ended.
int InterruptedCode(const Signals& signals) {
  return signals.interrupted_by() == SIGTERM ? kExitTerminated : kExitCancelled;
}

// FailCommand of one that may have been interrupted.
int Fail(CommandContext& context, const Signals& signals, const absl::Status& status) {
  const int code = FailCommand(context, status);
  return code == kExitCancelled ? InterruptedCode(signals) : code;
}

// What is said when it is left alone, at once or because its terminal went away.
void SetNotes(Signals& signals, const std::string& run, OnInterrupt on_interrupt) {
  signals.SetHangUpNote(
      fmt::format("\nassay: hung up; run {} goes on, `assay watch {}` follows it\n", run, run));
  signals.SetLeaveNote(
      on_interrupt == OnInterrupt::kLeave
          ? ""
          : fmt::format("\nassay: left at once; the coordinator goes on cancelling run {}; `assay "
                        "watch {}` says when it is done\n",
                        run, run));
}

// Why the run was left; how to go on with it.
int PrintLost(CommandContext& context, const Signals& signals, const FollowResult& followed,
              const std::string& run, OnInterrupt on_interrupt) {
  const bool cancelling = followed.interrupted && on_interrupt == OnInterrupt::kCancelRun;
  context.output.Error(
      cancelling
          ? fmt::format("{}\nthe results so far are kept; `assay cancel {}` cancels it once a "
                        "coordinator answers, the same command again goes on with it",
                        Message(followed.status), Printable(run))
          : fmt::format("{}\nthe results so far are kept; run the same command again to go on",
                        Message(followed.status)));
  return followed.interrupted ? InterruptedCode(signals) : kExitNothingRun;
}

// Follows the run, prints its results and gives the exit code.
int FollowAndPrint(CommandContext& context, Session& session, Signals& signals, int terminal,
                   const std::string& run, OnInterrupt on_interrupt) {
  SetNotes(signals, Printable(run), on_interrupt);
  FollowOptions options;
  options.on_interrupt = on_interrupt;
  options.interrupt_fd = signals.interrupt_fd();
  const std::unique_ptr<ProgressView> view = MakeView(context, signals, terminal);
  signals.HideCursor();
  const FollowResult followed = Follow(session, run, options, *view, context.clock);
  view->Finish();
  signals.ShowCursor();
  // What is printed now is not asked for again: a reader that does not come must not hold it.
  signals.SetSigterm(OnSigterm::kEnd);
  const std::string id = followed.last ? followed.last->run : run;
  if (!followed.status.ok()) {
    if (IsLost(followed.status)) return PrintLost(context, signals, followed, id, on_interrupt);
    return FailCommand(context, followed.status);
  }
  if (followed.interrupted && on_interrupt == OnInterrupt::kLeave) {
    context.output.Error(
        fmt::format("stopped watching; run {} goes on (`assay watch {}`, `assay "
                    "cancel {}`)",
                    Printable(id), Printable(id), Printable(id)));
    return kExitCancelled;
  }
  const auto results = session.Call([&](Control& control) { return control.GetResults(id); });
  if (!results.ok()) return FailCommand(context, results.status());
  PrintResults(context, *results);
  const int code = PrintEnd(context, session, id, results->records, *followed.last);
  return followed.interrupted ? InterruptedCode(signals) : code;
}

// Of a run that was accepted: its line, notes, and what comes after.
int AfterSubmit(CommandContext& context, Session& session, Signals& signals, int terminal,
                const SubmitResult& submitted, const std::vector<std::string>& told) {
  PrintRunLine(context, submitted.run);
  if (!context.args.quiet) {
    for (const std::string& warning : submitted.warnings) {
      if (std::find(told.begin(), told.end(), warning) == told.end()) {
        context.output.Warning(warning);
      }
    }
  }
  const std::string run = Printable(submitted.run);
  if (submitted.continued) {
    PrintNote(context, context.args.resume
                           ? "the run goes on; what is done is not measured again"
                           : "an unfinished run of the same matrix goes on; what is done is not "
                             "measured again (--new would start afresh)");
  }
  if (context.args.detach) {
    PrintNote(context, fmt::format("detached; `assay watch {}` follows it", run));
    return kExitOk;
  }
  return FollowAndPrint(context, session, signals, terminal, submitted.run,
                        OnInterrupt::kCancelRun);
}

std::string NewRequestId(const CommandContext& context) { return NewUlid(context.clock.WallNow()); }

}  // namespace

int RunCommand(CommandContext& context) {
  // The coordinator checks it as well; here it costs no start of one.
  const auto text = ReadMatrixText(context.args.file);
  if (!text.ok()) return FailCommand(context, text.status());
  Submission submission;
  submission.request_id = NewRequestId(context);
  submission.matrix_yaml = *text;
  submission.file_name = MatrixFileName(context.args.file);
  submission.allow_many = context.args.yes;
  submission.force_new = context.args.force_new;
  submission.labels = context.args.labels;
  submission.slice = context.args.slice;
  submission.resume = context.args.resume;
  MatrixOptions options;
  options.allow_many = context.args.yes;
  const auto matrix = ParseMatrix(*text, submission.file_name, options);
  if (!matrix.ok()) return FailCommand(context, matrix.status());
  if (!context.args.quiet) {
    for (const std::string& warning : matrix->warnings) context.output.Warning(warning);
  }
  const int terminal = BlockTerminal(context);
  Signals signals(terminal);
  if (!context.args.detach) signals.SetSigterm(OnSigterm::kInterrupt);
  const std::string note =
      "\nassay: left before the coordinator answered; `assay ls` shows whether the run was "
      "accepted\n";
  signals.SetLeaveNote(note);
  signals.SetHangUpNote(note);
  Session session = MakeSession(context, signals.interrupt_fd());
  if (absl::Status status = session.Open(); !status.ok()) return Fail(context, signals, status);
  const auto submitted = session.Call([&](Control& control) { return control.Submit(submission); });
  if (!submitted.ok()) return Fail(context, signals, submitted.status());
  return AfterSubmit(context, session, signals, terminal, *submitted, matrix->warnings);
}

int RerunCommand(CommandContext& context) {
  const int terminal = BlockTerminal(context);
  Signals signals(terminal);
  if (!context.args.detach) signals.SetSigterm(OnSigterm::kInterrupt);
  Session session = MakeSession(context, signals.interrupt_fd());
  if (absl::Status status = session.Open(); !status.ok()) return Fail(context, signals, status);
  const std::string request = NewRequestId(context);
  const auto submitted = session.Call(
      [&](Control& control) { return control.RerunFailed(context.args.run, request); });
  if (!submitted.ok()) return Fail(context, signals, submitted.status());
  SubmitResult result = *submitted;
  result.continued = false;  // always true here, and no news
  return AfterSubmit(context, session, signals, terminal, result, {});
}

int WatchCommand(CommandContext& context) {
  const int terminal = BlockTerminal(context);
  Signals signals(terminal);
  Session session = MakeSession(context, signals.interrupt_fd());
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  return FollowAndPrint(context, session, signals, terminal, context.args.run, OnInterrupt::kLeave);
}

int CancelCommand(CommandContext& context) {
  const int terminal = BlockTerminal(context);
  Signals signals(terminal);
  Session session = MakeSession(context, signals.interrupt_fd());
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  const auto cancelled =
      session.Call([&](Control& control) { return control.Cancel(context.args.run); });
  if (!cancelled.ok()) return FailCommand(context, cancelled.status());
  FollowOptions options;
  options.interrupt_fd = signals.interrupt_fd();
  const std::unique_ptr<ProgressView> view = MakeView(context, signals, terminal);
  signals.HideCursor();
  const FollowResult followed = Follow(session, cancelled->run, options, *view, context.clock);
  view->Finish();
  signals.ShowCursor();
  if (!followed.status.ok()) return FailCommand(context, followed.status);
  if (followed.interrupted) {
    context.output.Error("stopped waiting; the cancel stands");
    return kExitCancelled;
  }
  const RunUpdate& last = *followed.last;
  const std::string counts = CountsText(last.outcomes);
  context.output.Out(fmt::format("run {} {}{}{}\n", Printable(last.run),
                                 last.state == "cancelled" ? "is cancelled" : "had already ended",
                                 counts.empty() ? "" : ": ", counts));
  return kExitOk;
}

}  // namespace assay::cli
