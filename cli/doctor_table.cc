#include "cli/doctor_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/output.h"
#include "cli/printable.h"
#include "common/text/number_format.h"
#include "common/text/utf8.h"

namespace assay::cli {
namespace {

constexpr size_t kStateWidth = 7;  // "warning"
// A longer name stands on a line of its own.
constexpr size_t kMostNameWidth = 22;
constexpr size_t kLeastFindingWidth = 20;

Color StateColor(CheckState state) {
  switch (state) {
    case CheckState::kBad:
      return Color::kRed;
    case CheckState::kWarning:
      return Color::kYellow;
    case CheckState::kUnknown:
      return Color::kFaint;
    case CheckState::kOk:
      return Color::kGreen;
  }
  return Color::kNone;
}

std::string PaddedTo(const std::string& text, size_t width) {
  const size_t has = DisplayWidth(text);
  return has < width ? text + std::string(width - has, ' ') : text;
}

// Lines of at most `width` columns, broken at blanks; a longer word is broken where it must be, not
// cut: it may be a path.
std::vector<std::string> WrappedLines(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  std::string line;
  size_t at = 0;
  while (at < text.size()) {
    const size_t blank = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, blank - at);
    at = blank + 1;
    if (word.empty()) continue;
    if (!line.empty() && DisplayWidth(line) + 1 + DisplayWidth(word) > width) {
      lines.push_back(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    while (DisplayWidth(line) > width) {
      size_t bytes = line.size();
      while (bytes > 1 && DisplayWidth(std::string_view(line).substr(0, bytes)) > width) {
        bytes = Utf8Boundary(line, bytes - 1);
      }
      if (bytes == 0) break;
      lines.push_back(line.substr(0, bytes));
      line.erase(0, bytes);
    }
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

void AddCheck(const DoctorCheck& check, size_t name_width, size_t width, bool color,
              RemedyKind remedies, std::string& out) {
  const std::string name = Printable(check.name);
  const size_t indent = kStateWidth + 2 + name_width + 2;
  const size_t room = width > indent + kLeastFindingWidth ? width - indent : kLeastFindingWidth;
  const std::string margin(indent, ' ');
  out += Colored(PaddedTo(std::string(CheckStateName(check.state)), kStateWidth),
                 StateColor(check.state), color) +
         "  ";
  const bool own_line = DisplayWidth(name) > name_width;
  out += own_line ? name + "\n" : PaddedTo(name, name_width) + "  ";
  bool first = !own_line;
  for (const std::string& line : WrappedLines(Printable(check.finding), room)) {
    out += (first ? "" : margin) + line + "\n";
    first = false;
  }
  if (first) out += "\n";
  if (check.remedy.empty()) return;
  if (remedies == RemedyKind::kSentence) {
    for (const std::string& line : WrappedLines("change: " + Printable(check.remedy), room)) {
      out += margin + Colored(line, Color::kBold, color) + "\n";
    }
    return;
  }
  const std::string remedy = "type: " + Printable(check.remedy);
  // Further left where it would not fit, since a break inside would be copied too.
  const size_t left = DisplayWidth(remedy) <= room ? indent : kStateWidth + 2;
  out += std::string(left, ' ') + Colored(remedy, Color::kBold, color) + "\n";
}

std::string CountsOf(const DoctorReport& report) {
  std::string counts;
  for (const CheckState state :
       {CheckState::kBad, CheckState::kWarning, CheckState::kUnknown, CheckState::kOk}) {
    const auto count = std::count_if(report.checks.begin(), report.checks.end(),
                                     [&](const DoctorCheck& c) { return c.state == state; });
    if (count == 0) continue;
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, CheckStateName(state));
  }
  return counts;
}

}  // namespace

std::string DoctorTable(const DoctorReport& report, size_t width, bool color, RemedyKind remedies) {
  std::vector<DoctorCheck> checks = report.checks;
  std::stable_sort(checks.begin(), checks.end(),
                   [](const DoctorCheck& a, const DoctorCheck& b) { return a.state > b.state; });
  size_t name_width = 0;
  for (const DoctorCheck& check : checks) {
    const size_t its = DisplayWidth(Printable(check.name));
    if (its <= kMostNameWidth) name_width = std::max(name_width, its);
  }
  std::string out;
  for (const DoctorCheck& check : checks) {
    AddCheck(check, name_width, width, color, remedies, out);
  }
  out += fmt::format("{}: {}\n", report.node.empty() ? "this node" : Printable(report.node),
                     checks.empty() ? "nothing was checked" : CountsOf(report));
  return out;
}

}  // namespace assay::cli
