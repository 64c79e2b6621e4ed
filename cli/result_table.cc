#include "cli/result_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "cli/fitted_table.h"
#include "cli/printable.h"
#include "common/results/outcome.h"
#include "common/results/summary.h"
#include "common/text/number_format.h"

namespace assay::cli {
namespace {

bool EndsWith(std::string_view text, std::string_view end) { return text.ends_with(end); }

Color RowColor(const SummaryRow& row) {
  if (row.outcome == "ok") return row.invalid > 0 ? Color::kRed : Color::kNone;
  const auto outcome = OutcomeFromName(row.outcome);
  // Repeats that differ ("ok (2), fail (1)") are as bad as their worst.
  if (!outcome) return row.outcome == "pending" ? Color::kFaint : Color::kRed;
  return IsFailure(*outcome) ? Color::kRed : Color::kYellow;
}

std::string OutcomeText(const SummaryRow& row) {
  std::string text = row.outcome;
  if (row.invalid > 0) {
    // The figure beside it is of the valid ones.
    text += row.processes == 0 ? " invalid" : fmt::format(" ({} invalid)", row.invalid);
  }
  // out_of_memory beside mem_limit, and user_cancelled beside cancelled, say nothing new.
  if (!row.reason.empty() && row.outcome != "mem_limit" && row.outcome != "cancelled") {
    text += ": " + row.reason;
  }
  return text;
}

// Memory has three figures that must not be mixed in one column: the first of them that any row
// has.
struct MemoryColumn {
  const char* title = "";
  std::optional<int64_t> SummaryRow::* figure = nullptr;
};
MemoryColumn ChooseMemory(const std::vector<SummaryRow>& rows) {
  constexpr std::array<MemoryColumn, 3> kFigures = {
      MemoryColumn{"mem used", &SummaryRow::device_used_bytes},
      MemoryColumn{"mem reserved", &SummaryRow::reserved_peak_bytes},
      MemoryColumn{"mem allocated", &SummaryRow::allocated_peak_bytes}};
  for (const MemoryColumn& figure : kFigures) {
    for (const SummaryRow& row : rows) {
      if (row.*figure.figure) return figure;
    }
  }
  return {};
}

std::string CommonUnit(const std::vector<SummaryRow>& rows) {
  std::string unit;
  for (const SummaryRow& row : rows) {
    if (!row.throughput) continue;
    if (!unit.empty() && row.unit != unit) return "";
    unit = row.unit;
  }
  return unit;
}

// A mark that every row has says nothing in a column; the line below the table says it.
bool AllSimulated(const std::vector<SummaryRow>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const SummaryRow& row) {
    return std::find(row.marks.begin(), row.marks.end(), "simulated") != row.marks.end();
  });
}

std::string MarksText(const SummaryRow& row, bool all_simulated) {
  std::string text;
  for (const std::string& mark : row.marks) {
    if (all_simulated && mark == "simulated") continue;
    text += (text.empty() ? "" : " ") + mark;
  }
  return text;
}

std::string CountText(const std::optional<int64_t>& value) {
  return value ? fmt::format("{}", *value) : "";
}

// An axis at its default everywhere would only take room.
bool AnyNot(const std::vector<SummaryRow>& rows, std::optional<int64_t> SummaryRow::* axis,
            int64_t usual) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const SummaryRow& row) { return row.*axis && *(row.*axis) != usual; });
}

// What an empty ratio means, and that 1.00 is another row's than the first.
std::string BaselineLine(const std::vector<SummaryRow>& rows, std::string_view baseline) {
  const auto measured =
      std::count_if(rows.begin(), rows.end(), [](const SummaryRow& row) { return row.throughput; });
  const auto without = std::count_if(
      rows.begin(), rows.end(), [](const SummaryRow& row) { return row.throughput && !row.ratio; });
  if (baseline.empty() || measured == 0) return "";
  const std::string card = Printable(baseline);
  if (without == measured) return fmt::format("no ratios: baseline {} has no valid row\n", card);
  if (without == 0) return fmt::format("ratios to {}, same axes and stack\n", card);
  return fmt::format("ratios to {}, same axes and stack; {} without: it has no such valid row\n",
                     card, Counted(static_cast<size_t>(without), "row"));
}

}  // namespace

std::string RatioText(double ratio) {
  return ratio >= 0.1 && ratio < 1e6 ? fmt::format("{:.2f}", ratio) : HumanNumber(ratio, 2);
}

std::string ResultTable(std::span<const Record> records, size_t width, bool color,
                        std::string_view baseline) {
  // Where nothing but the baseline's card was measured, each row would be held against itself.
  const bool alone = std::all_of(records.begin(), records.end(), [&](const Record& record) {
    return record.Text(Field::kCard) == baseline || record.Text(Field::kCard).empty();
  });
  if (alone) baseline = "";
  const std::vector<SummaryRow> rows = Summarize(records, baseline);
  if (rows.empty()) return "no cells\n";
  const std::string unit = CommonUnit(rows);
  const MemoryColumn memory = ChooseMemory(rows);
  const bool all_simulated = AllSimulated(rows);
  const bool gpus = AnyNot(rows, &SummaryRow::gpus, 1);
  const bool nodes = AnyNot(rows, &SummaryRow::nodes, 1);
  const bool accumulate = AnyNot(rows, &SummaryRow::accumulate, 1);
  const std::vector<FittedColumn> columns = {
      {"model", Align::kLeft, 12, 0, " "},
      {"mode", Align::kLeft, 0, 0, " "},
      {"precision", Align::kLeft, 0, 0, " "},
      {"batch", Align::kRight, 0, 0, "batch "},
      {"lane", Align::kLeft, 0, 0, " "},
      {"image", Align::kLeft, 0, 30, " "},
      {"acc", Align::kRight, 0, 31, "accumulate "},
      {"gpus", Align::kRight, 0, 32, "gpus "},
      {"nodes", Align::kRight, 0, 33, "nodes "},
      {"stack", Align::kLeft, 12, 20, " "},
      {"card", Align::kLeft, 12, 0, " "},
      {"target", Align::kLeft, 12, 34, " "},
      {"with", Align::kLeft, 0, 0, ""},
      {unit.empty() ? "throughput" : unit, Align::kRight, 0, 0, ""},
      {"±95 %", Align::kRight, 0, 12, ""},
      {"ratio", Align::kRight, 0, 13, ""},
      {memory.title, Align::kRight, 0, 11, ""},
      {"outcome", Align::kLeft, 16, 0, ""},
      {"marks", Align::kLeft, 9, 10, " "},
  };
  std::vector<FittedRow> lines;
  for (const SummaryRow& row : rows) {
    std::string throughput;
    if (row.throughput) {
      throughput = HumanNumber(*row.throughput);
      if (unit.empty()) throughput += " " + row.unit;
    }
    const auto bytes = memory.figure != nullptr ? row.*memory.figure : std::nullopt;
    lines.push_back({{row.model, row.mode, row.precision, row.batch, row.lane, row.image,
                      accumulate ? CountText(row.accumulate) : "", gpus ? CountText(row.gpus) : "",
                      nodes ? CountText(row.nodes) : "", row.stack, row.card,
                      row.target == row.card ? "" : row.target, row.apart, throughput,
                      row.interval_ratio ? "±" + HumanPercent(*row.interval_ratio) : "",
                      row.ratio ? RatioText(row.ratio->value) : "", bytes ? HumanBytes(*bytes) : "",
                      OutcomeText(row), MarksText(row, all_simulated)},
                     RowColor(row)});
  }
  return RenderFitted(columns, lines, width, color) + BaselineLine(rows, baseline);
}

std::string CellLabel(const Record& record) {
  std::string label;
  const auto add = [&](Field field, const char* before) {
    const std::string text = Printable(record.Text(field));
    if (!text.empty()) label += (label.empty() ? "" : " ") + std::string(before) + text;
  };
  add(Field::kModel, "");
  add(Field::kMode, "");
  add(Field::kPrecision, "");
  add(Field::kBatch, "b");
  add(Field::kLane, "");
  if (const auto gpus = record.Integer(Field::kGpus); gpus && *gpus > 1) {
    label += fmt::format(" {} gpus", *gpus);
  }
  if (const auto nodes = record.Integer(Field::kNodes); nodes && *nodes > 1) {
    label += fmt::format(" {} nodes", *nodes);
  }
  add(record.Has(Field::kTarget) ? Field::kTarget : Field::kCard, "");
  if (const auto repeat = record.Integer(Field::kRepeat)) {
    label += fmt::format(" repeat {}", *repeat);
  }
  return label;
}

std::string FieldText(const Record& record, const FieldInfo& field) {
  if (!record.Has(field.field)) return "";
  const std::string_view name = field.name;
  if (field.type == FieldType::kFlag) return *record.Flag(field.field) ? "yes" : "no";
  if (field.type == FieldType::kText || field.type == FieldType::kCount)
    return Printable(record.Text(field.field));
  if (field.type == FieldType::kList) {
    std::string text;
    for (const std::string& item : record.List(field.field)) {
      text += (text.empty() ? "" : ", ") + Printable(item);
    }
    return text;
  }
  const double number = record.Number(field.field).value_or(0);
  if (EndsWith(name, "_bytes")) {
    return fmt::format("{} ({})", HumanBytes(record.Integer(field.field).value_or(0)),
                       HumanInteger(record.Integer(field.field).value_or(0)));
  }
  if (EndsWith(name, "_ratio")) return HumanPercent(number);
  if (EndsWith(name, "_ms")) return HumanNumber(number) + " ms";
  if (EndsWith(name, "_watts")) return HumanNumber(number) + " W";
  if (EndsWith(name, "_joules")) return HumanNumber(number) + " J";
  if (EndsWith(name, "_hertz")) return HumanNumber(number / 1e6) + " MHz";
  if (EndsWith(name, "_celsius")) return HumanNumber(number) + " °C";
  if (EndsWith(name, "seconds")) return HumanNumber(number) + " s";
  if (name == "throughput") {
    return fmt::format("{} {}", HumanNumber(number), Printable(record.Text(Field::kUnit)));
  }
  if (field.type == FieldType::kInteger)
    return HumanInteger(record.Integer(field.field).value_or(0));
  return HumanNumber(number, 6);
}

std::string RecordText(const Record& record) {
  // Groups begin with these fields; the order is that of the catalogue.
  struct Group {
    std::string_view first;
    const char* title;
  };
  constexpr Group kGroups[] = {{"key", "spec"},
                               {"cell", "cell"},
                               {"throughput", "measurement"},
                               {"allocated_peak_bytes", "memory"},
                               {"power_mean_watts", "power, clocks, heat"},
                               {"transport", "where and with what"},
                               {"allow_tf32_matmul", "settings"}};
  std::string out;
  std::string title;
  for (const FieldInfo& field : AllFields()) {
    for (const Group& group : kGroups) {
      if (group.first == field.name) title = group.title;
    }
    const std::string text = FieldText(record, field);
    // The unit stands beside the throughput.
    if (text.empty() || field.name == "unit") continue;
    if (!title.empty()) {
      out += fmt::format("{}{}\n", out.empty() ? "" : "\n", title);
      title.clear();
    }
    out += fmt::format("  {:<28}{}\n", field.name, text);
  }
  return out;
}

}  // namespace assay::cli
