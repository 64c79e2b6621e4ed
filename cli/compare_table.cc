#include "cli/compare_table.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "cli/fitted_table.h"
#include "cli/printable.h"
#include "cli/result_table.h"
#include "common/text/number_format.h"

namespace assay::cli {
namespace {

using compare::By;
using compare::Comparison;
using compare::Group;
using compare::SideRow;
using compare::Standing;
using compare::WorkloadRow;

std::string Ratio(const std::optional<double>& ratio) { return ratio ? RatioText(*ratio) : ""; }

std::string RatioOf(const std::optional<measure::Ratio>& ratio) {
  return ratio ? RatioText(ratio->value) : "";
}

std::string IntervalOf(const std::optional<measure::Ratio>& ratio) {
  if (!ratio || !ratio->interval) return "";
  return fmt::format("{} to {}", RatioText(ratio->interval->low), RatioText(ratio->interval->high));
}

Color ColorOf(Standing standing) {
  return standing == Standing::kFaster   ? Color::kGreen
         : standing == Standing::kSlower ? Color::kRed
                                         : Color::kNone;
}

// "7/9; 2 mem_limit".
std::string Coverage(const Group& group, const SideRow& row) {
  std::string text = fmt::format("{}/{}", row.completed, group.asked);
  for (const auto& [reason, count] : row.missing) text += fmt::format("; {} {}", count, reason);
  return text;
}

std::string Heading(const Comparison& comparison, const Group& group) {
  std::vector<std::string> parts;
  for (const std::string& text : {group.card, group.precision, group.lane, group.stack}) {
    if (!text.empty()) parts.push_back(Printable(text));
  }
  if (!group.gpus.empty() && group.gpus != "1") parts.push_back(group.gpus + " gpus");
  if (!group.nodes.empty() && group.nodes != "1") parts.push_back(group.nodes + " nodes");
  std::string to = comparison.by == By::kNode ? "against the median of the nodes"
                                              : "against " + Printable(comparison.baseline);
  parts.push_back(std::move(to));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// What the ratios of a group are, in words.
std::string Meaning(const Comparison& comparison, const Group& group) {
  if (comparison.by == By::kNode) {
    return fmt::format("deviation: in robust standard deviations; odd beyond {} and {}\n",
                       compare::kOddDeviation, HumanPercent(compare::kSameRatio));
  }
  const char* score =
      comparison.score == compare::Score::kEqual     ? "at the largest batch that all completed"
      : comparison.score == compare::Score::kBest    ? "each at its best batch of the same grid"
      : comparison.score == compare::Score::kLargest ? "each at the largest batch that it holds"
                                                     : "each at its best batch, layout and lane";
  if (group.ranked) {
    return fmt::format("{} of {} asked for completed by all, {}\n",
                       Counted(group.common.size(), "workload"), group.asked, score);
  }
  return fmt::format(
      "no ranking: {} of {} workloads completed by all, under half; ratios are over what each has "
      "in common with the baseline\n",
      group.common.size(), group.asked);
}

struct Sheet {
  std::vector<FittedColumn> columns;
  std::vector<FittedRow> rows;
};

Sheet SidesSheet(const Comparison& comparison, const Group& group) {
  Sheet sheet;
  sheet.columns = {{std::string(ByName(comparison.by)), Align::kLeft, 12, 0, ""},
                   {"ratio", Align::kRight, 0, 0, ""},
                   {"95 %", Align::kLeft, 0, 5, ""},
                   {"verdict", Align::kLeft, 0, 0, ""},
                   {"deviation", Align::kRight, 0, 0, ""},
                   {"completed", Align::kLeft, 12, 0, ""},
                   {"per watt", Align::kRight, 0, 3, ""},
                   {"per dollar", Align::kRight, 0, 0, ""},
                   {"by memory", Align::kRight, 0, 2, ""},
                   {"marks", Align::kLeft, 12, 1, ""}};
  for (const SideRow& row : group.sides) {
    const auto& ratio = group.ranked ? row.geomean : row.pairwise;
    const Standing verdict = group.ranked ? row.verdict : row.pairwise_verdict;
    const std::string word = row.is_baseline ? "baseline" : std::string(StandingName(verdict));
    sheet.rows.push_back(
        {{row.side, row.is_baseline ? "1" : RatioOf(ratio), IntervalOf(ratio), word,
          row.deviation ? fmt::format("{:+.1f}", *row.deviation) : "", Coverage(group, row),
          row.is_baseline ? "" : Ratio(row.per_watt), row.is_baseline ? "" : Ratio(row.per_dollar),
          Ratio(row.memory_bought), fmt::format("{}", fmt::join(row.marks, "; "))},
         ColorOf(verdict)});
  }
  return sheet;
}

// Rows of one workload stand together, in the order of the sides.
Sheet WorkloadsSheet(const Comparison& comparison, const Group& group) {
  Sheet sheet;
  const bool tuned = comparison.score == compare::Score::kTuned;
  sheet.columns = {{"workload", Align::kLeft, 12, 0, " "},
                   {std::string(ByName(comparison.by)), Align::kLeft, 12, 0, ""},
                   {"batch", Align::kRight, 0, 0, "batch "},
                   {tuned ? "lane" : "", Align::kLeft, 0, 0, ""},
                   {tuned ? "layout" : "", Align::kLeft, 0, 0, ""},
                   {"throughput", Align::kRight, 0, 0, ""},
                   {"ratio", Align::kRight, 0, 0, ""},
                   {"95 %", Align::kLeft, 0, 5, ""},
                   {"verdict", Align::kLeft, 0, 0, ""},
                   {"gpus", Align::kRight, 0, 3, ""},
                   {"processes", Align::kRight, 0, 2, ""},
                   {"spread", Align::kRight, 0, 4, ""},
                   {"per watt", Align::kRight, 0, 1, ""}};
  std::vector<std::string> order;
  for (const SideRow& side : group.sides) {
    for (const WorkloadRow& row : side.workloads) {
      if (std::find(order.begin(), order.end(), row.workload) == order.end()) {
        order.push_back(row.workload);
      }
    }
  }
  std::sort(order.begin(), order.end());
  for (const std::string& workload : order) {
    for (const SideRow& side : group.sides) {
      for (const WorkloadRow& row : side.workloads) {
        if (row.workload != workload) continue;
        sheet.rows.push_back(
            {{row.workload, side.side, row.batch, tuned ? row.lane : "", tuned ? row.layout : "",
              fmt::format("{} {}", HumanNumber(row.value), row.unit),
              side.is_baseline ? "1" : RatioOf(row.ratio), IntervalOf(row.ratio),
              side.is_baseline ? "baseline" : std::string(StandingName(row.verdict)),
              fmt::format("{}", row.gpus), fmt::format("{}", row.processes),
              row.spread_ratio ? HumanPercent(*row.spread_ratio) : "",
              side.is_baseline ? "" : Ratio(row.per_watt)},
             ColorOf(row.verdict)});
      }
    }
  }
  return sheet;
}

Sheet LeftOutSheet(const Comparison& comparison) {
  Sheet sheet;
  sheet.columns = {{"left out", Align::kLeft, 12, 0, ""},
                   {"workload", Align::kLeft, 12, 0, ""},
                   {"cells", Align::kRight, 0, 1, ""},
                   {"why", Align::kLeft, 20, 0, ""}};
  for (const compare::LeftOut& left : comparison.left_out) {
    sheet.rows.push_back({{left.side.empty() ? "(not known)" : left.side, left.workload,
                           fmt::format("{}", left.cells), left.reason},
                          Color::kNone});
  }
  return sheet;
}

// Columns may have no room; this must be seen all the same.
std::string Caveat(const Comparison& comparison) {
  std::string text;
  for (const char* mark : {"simulated", "published"}) {
    bool any = false;
    for (const Group& group : comparison.groups) {
      for (const SideRow& side : group.sides) {
        any = any || std::find(side.marks.begin(), side.marks.end(), mark) != side.marks.end();
      }
    }
    if (any) text += fmt::format("\n{} figures, not measured ones\n", mark);
  }
  return text;
}

std::string Bridges(const Comparison& comparison) {
  std::string text;
  for (const compare::Bridge& bridge : comparison.bridges) {
    text +=
        fmt::format("bridge: {} on stack {} is {} times itself on {} ({})\n",
                    Printable(bridge.card), Printable(bridge.stack), RatioText(bridge.ratio.value),
                    Printable(bridge.base_stack), Counted(bridge.workloads, "workload"));
  }
  return text;
}

std::string Markdown(const Sheet& sheet) {
  std::vector<size_t> kept;
  for (size_t i = 0; i < sheet.columns.size(); ++i) {
    if (std::any_of(sheet.rows.begin(), sheet.rows.end(),
                    [&](const FittedRow& row) { return !row.cells[i].empty(); })) {
      kept.push_back(i);
    }
  }
  const auto line = [&](const std::function<std::string(size_t)>& cell) {
    std::string text = "|";
    for (const size_t i : kept) text += " " + cell(i) + " |";
    return text + "\n";
  };
  std::string text = line([&](size_t i) { return sheet.columns[i].title; });
  text += line([&](size_t i) {
    return std::string(sheet.columns[i].align == Align::kRight ? "---:" : "---");
  });
  for (const FittedRow& row : sheet.rows) {
    text += line([&](size_t i) {
      std::string cell;
      for (const char c : Printable(row.cells[i]))
        cell += c == '|' ? std::string("\\|") : std::string(1, c);
      return cell;
    });
  }
  return text;
}

}  // namespace

std::string ComparisonTable(const Comparison& comparison, size_t width, bool color) {
  std::string text;
  const auto add = [&](const Sheet& sheet) {
    text += "\n" + RenderFitted(sheet.columns, sheet.rows, width, color);
  };
  for (const Group& group : comparison.groups) {
    text += (text.empty() ? "" : "\n") + Colored(Heading(comparison, group), Color::kBold, color) +
            "\n" + Meaning(comparison, group);
    add(SidesSheet(comparison, group));
    const Sheet workloads = WorkloadsSheet(comparison, group);
    if (!workloads.rows.empty()) add(workloads);
  }
  if (!comparison.bridges.empty()) text += "\n" + Bridges(comparison);
  if (!comparison.left_out.empty()) add(LeftOutSheet(comparison));
  for (const std::string& note : comparison.notes) text += "\n" + Printable(note) + "\n";
  return text + Caveat(comparison);
}

std::string ComparisonMarkdown(const Comparison& comparison) {
  std::string text;
  for (const Group& group : comparison.groups) {
    text += fmt::format("{}### {}\n\n{}\n{}", text.empty() ? "" : "\n", Heading(comparison, group),
                        Meaning(comparison, group), Markdown(SidesSheet(comparison, group)));
    const Sheet workloads = WorkloadsSheet(comparison, group);
    if (!workloads.rows.empty()) text += "\n" + Markdown(workloads);
  }
  if (!comparison.bridges.empty()) text += "\n" + Bridges(comparison);
  if (!comparison.left_out.empty()) text += "\n" + Markdown(LeftOutSheet(comparison));
  for (const std::string& note : comparison.notes) text += "\n" + Printable(note) + "\n";
  return text + Caveat(comparison);
}

}  // namespace assay::cli
