#include "cli/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/printable.h"
#include "common/text/number_format.h"
#include "common/text/utf8.h"

namespace assay::cli {
namespace {

constexpr size_t kMostActiveLines = 4;

Color ColorOf(const std::optional<Outcome>& outcome) {
  if (!outcome) return Color::kNone;
  if (*outcome == Outcome::kOk) return Color::kGreen;
  return IsFailure(*outcome) ? Color::kRed : Color::kYellow;
}

std::string OutcomeWord(const std::optional<Outcome>& outcome) {
  return outcome ? std::string(OutcomeName(*outcome)) : "ended";
}

std::string LeftText(double seconds, double age) {
  if (!(seconds > 0) || !std::isfinite(seconds)) return "";
  return HumanTimeLeft(std::max(0.0, seconds - age)) + " left";
}

void Join(std::string& text, const std::string& part, const char* separator = ", ") {
  if (part.empty()) return;
  if (!text.empty()) text += separator;
  text += part;
}

std::string ActivityText(const CellProgress& cell, double age) {
  std::string text = Printable(cell.phase);
  if (cell.attempt_number > 1) Join(text, fmt::format("attempt {}", cell.attempt_number));
  if (cell.step > 0) Join(text, fmt::format("step {}", cell.step));
  Join(text, ThroughputText(cell.throughput, cell.unit));
  Join(text, LeftText(cell.seconds_left, age));
  return text;
}

std::string HeadLine(const RunUpdate& update, double age) {
  std::string text = Printable(update.name.empty() ? update.run : update.name);
  if (update.state == "cancelling") Join(text, "cancelling", "  ");
  // None before the first target is there.
  if (update.cells > 0) Join(text, fmt::format("{}/{} cells", update.done, update.cells), "  ");
  Join(text, CountsText(update.outcomes), "  ");
  Join(text, LeftText(update.seconds_left, age), "  ");
  return text;
}

std::string Bar(const RunUpdate& update, size_t columns) {
  if (update.cells == 0 || columns < 20) return "";
  const double ratio =
      std::min(1.0, static_cast<double>(update.done) / static_cast<double>(update.cells));
  const size_t width = std::min<size_t>(columns - 8, 60);
  const size_t full = static_cast<size_t>(std::floor(ratio * static_cast<double>(width)));
  // Rounded down: 100 % only when all is done.
  return fmt::format("[{}{}] {:3} %", std::string(full, '#'), std::string(width - full, '.'),
                     static_cast<int>(ratio * 100));
}

void AddActive(const RunUpdate& update, double age, size_t columns,
               std::vector<std::string>& lines) {
  if (update.active.size() == 1) {
    const CellProgress& cell = update.active.front();
    lines.push_back("> " + TruncateToWidth(Printable(cell.label), columns - 2));
    lines.push_back("  " + TruncateToWidth(ActivityText(cell, age), columns - 2));
    return;
  }
  const size_t shown = std::min(update.active.size(), kMostActiveLines);
  for (size_t i = 0; i < shown; ++i) {
    const std::string activity = ActivityText(update.active[i], age);
    const size_t room = columns > DisplayWidth(activity) + 24 ? columns - DisplayWidth(activity) - 4
                                                              : std::min<size_t>(20, columns - 2);
    lines.push_back(TruncateToWidth(
        fmt::format("> {}  {}", TruncateToWidth(Printable(update.active[i].label), room), activity),
        columns));
  }
  if (update.active.size() > shown) {
    lines.push_back(
        TruncateToWidth(fmt::format("  and {} more", update.active.size() - shown), columns));
  }
}

}  // namespace

std::string CountsText(const CountByOutcome& counts) {
  std::string text;
  for (const auto& [outcome, count] : counts) {
    if (count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, OutcomeName(outcome));
  }
  return text;
}

std::string ThroughputText(double throughput, const std::string& unit) {
  if (!(throughput > 0) || !std::isfinite(throughput)) return "";
  // The unit is not known before the runner has described its model.
  return HumanNumber(throughput) + (unit.empty() ? "" : " " + Printable(unit));
}

std::vector<std::string> ProgressBlock(const RunUpdate& update, const std::optional<CellEnd>& last,
                                       double age_seconds, TerminalSize size, bool color) {
  // The last column stays free: some terminals wrap when it is written.
  const size_t columns = static_cast<size_t>(std::max(10, size.columns - 1));
  std::vector<std::string> lines;
  lines.push_back(
      Colored(TruncateToWidth(HeadLine(update, age_seconds), columns), Color::kBold, color));
  if (std::string bar = Bar(update, columns); !bar.empty()) lines.push_back(std::move(bar));
  if (update.active.empty()) {
    if (!update.waiting_for.empty()) {
      lines.push_back(TruncateToWidth("waiting: " + Printable(update.waiting_for), columns));
    }
  } else {
    AddActive(update, age_seconds, columns, lines);
  }
  if (last) {
    std::string text =
        fmt::format("  before: {} {}", OutcomeWord(last->outcome), Printable(last->label));
    Join(text, ThroughputText(last->throughput, last->unit), "  ");
    lines.push_back(Colored(TruncateToWidth(text, columns), Color::kFaint, color));
  }
  const size_t most = static_cast<size_t>(std::max(1, size.rows - 1));
  if (lines.size() > most) lines.resize(most);
  return lines;
}

std::string EndedLine(const CellEnd& end, uint64_t number, uint64_t cells) {
  std::string text =
      fmt::format("[{}/{}] {}  {}", number, cells, OutcomeWord(end.outcome), Printable(end.label));
  Join(text, ThroughputText(end.throughput, end.unit), "  ");
  if (end.outcome != Outcome::kOk) {
    Join(text, Printable(end.reason), "  ");
    Join(text, Printable(end.message), ": ");
  }
  return text;
}

std::string HeartbeatLine(const RunUpdate& update) {
  std::string text;
  if (update.cells > 0) text = fmt::format("[{}/{}]", update.done, update.cells);
  if (update.active.empty()) {
    Join(text,
         update.waiting_for.empty() ? Printable(update.state)
                                    : "waiting: " + Printable(update.waiting_for),
         " ");
    return text;
  }
  const CellProgress& cell = update.active.front();
  Join(text, Printable(cell.label), " ");
  Join(text, ActivityText(cell, 0), "  ");
  if (update.active.size() > 1) {
    Join(text, fmt::format("and {} more", update.active.size() - 1));
  }
  Join(text, LeftText(update.seconds_left, 0), "; run: ");
  return text;
}

void BlockView::Update(const RunUpdate& update) {
  update_ = update;
  updated_ = clock_.Now();
  std::string above;
  const uint64_t before = update.done - std::min<uint64_t>(update.done, update.ended.size());
  for (size_t i = 0; i < update.ended.size(); ++i) {
    const CellEnd& end = update.ended[i];
    last_ = end;
    // What went wrong stays on the screen; what went well is in the table at the end.
    if (end.outcome && IsFailure(*end.outcome)) {
      const size_t columns = static_cast<size_t>(std::max(10, size_().columns - 1));
      above += Colored(TruncateToWidth(EndedLine(end, before + i + 1, update.cells), columns),
                       ColorOf(end.outcome), color_);
      above += '\n';
    }
  }
  Draw(above);
}

void BlockView::Tick() {
  if (update_ && clock_.Now() - drawn_ >= std::chrono::milliseconds(900)) Draw("");
}

void BlockView::Note(const std::string& sentence) { Draw(Printable(sentence) + "\n"); }

void BlockView::Finish() {
  update_.reset();
  Draw("");
}

void BlockView::Draw(const std::string& above) {
  drawn_ = clock_.Now();
  if (keeper_.gone && keeper_.gone()) {
    lines_ = 0;
    block_.clear();
  }
  std::string block;
  size_t lines = 0;
  if (update_) {
    const double age = std::chrono::duration<double>(std::max(clock_.Now() - updated_, {})).count();
    for (const std::string& line : ProgressBlock(*update_, last_, age, size_(), color_)) {
      block += line + '\n';
      ++lines;
    }
  }
  // What stands there already would only flicker.
  if (above.empty() && block == block_) return;
  std::string text;
  if (lines_ > 0) text += fmt::format("\r\x1B[{}A\x1B[J", lines_);
  text += above + block;
  lines_ = lines;
  block_ = std::move(block);
  if (!text.empty()) sink_(text);
  if (keeper_.drawn) keeper_.drawn(lines_);
}

void LineView::Update(const RunUpdate& update) {
  update_ = update;
  const uint64_t before = update.done - std::min<uint64_t>(update.done, update.ended.size());
  for (size_t i = 0; i < update.ended.size(); ++i) {
    Write(EndedLine(update.ended[i], before + i + 1, update.cells));
  }
  // Said once when it changes, not only after ten seconds: it is the reason why nothing happens.
  if (update.active.empty() && update.waiting_for != waiting_for_) {
    waiting_for_ = update.waiting_for;
    if (!waiting_for_.empty()) Write(HeartbeatLine(update));
  }
  Tick();
}

void LineView::Tick() {
  if (update_ && !update_->final && clock_.Now() - wrote_ >= kHeartbeat) {
    Write(HeartbeatLine(*update_));
  }
}

void QuietView::Update(const RunUpdate& update) {
  const bool waits = update.active.empty() && !update.waiting_for.empty() && !update.final;
  if (waits && waiting_for_.empty()) waiting_since_ = clock_.Now();
  waiting_for_ = waits ? update.waiting_for : "";
  if (!waits) waiting_since_.reset();
  Tick();
}

void QuietView::Tick() {
  if (!waiting_since_ || clock_.Now() - *waiting_since_ < kPatience) return;
  waiting_since_.reset();
  sink_(fmt::format("warning: the run has waited for {} s for {}\n", kPatience.count(),
                    Printable(waiting_for_)));
}

void LineView::Note(const std::string& sentence) { Write(Printable(sentence)); }

void LineView::Write(const std::string& line) {
  wrote_ = clock_.Now();
  sink_(line + "\n");
}

}  // namespace assay::cli
