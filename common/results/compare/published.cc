#include "common/results/compare/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "common/results/csv_reader.h"
#include "common/status/status.h"

namespace assay::compare {
namespace {

constexpr std::array<std::string_view, 17> kColumns = {
    "card",  "gpus",   "nodes", "stack", "framework",   "model",     "mode",   "precision", "lane",
    "batch", "metric", "value", "unit",  "power_watts", "price_usd", "source", "date"};
constexpr std::array<std::string_view, 5> kNeeded = {"card", "model", "metric", "value", "unit"};
constexpr std::array<std::string_view, 4> kMetrics = {"throughput", "latency", "max_batch",
                                                      "memory_used"};
constexpr size_t kMostFaults = 10;  // told one by one

// The cells of one line by the names of their columns.
class PublishedLine {
 public:
  PublishedLine(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}

  std::string operator[](std::string_view column) const {
    const auto at = std::find(table_.columns.begin(), table_.columns.end(), column);
    return at == table_.columns.end()
               ? ""
               : row_.cells[static_cast<size_t>(at - table_.columns.begin())];
  }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

template <class T>
bool Parse(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end;
}

// "" where the line fits.
std::string Fault(const PublishedLine& line, PublishedFigure& figure) {
  for (const std::string_view column : kNeeded) {
    if (line[column].empty() && column != "value") return fmt::format("{} is empty", column);
  }
  figure.metric = line["metric"];
  if (std::find(kMetrics.begin(), kMetrics.end(), figure.metric) == kMetrics.end()) {
    return fmt::format("metric is {}, not '{}'", fmt::join(kMetrics, ", "), figure.metric);
  }
  figure.mode = line["mode"].empty() ? "train" : line["mode"];
  if (figure.mode != "train" && figure.mode != "infer") {
    return fmt::format("mode is train or infer, not '{}'", figure.mode);
  }
  const auto count = [&](std::string_view column, int64_t& value) {
    const std::string text = line[column];
    return text.empty() || (Parse(text, value) && value >= 1);
  };
  for (const auto& [column, value] :
       {std::pair("gpus", &figure.gpus), {"nodes", &figure.nodes}, {"batch", &figure.batch}}) {
    if (!count(column, *value)) {
      return fmt::format("{} is a whole number from 1, not '{}'", column, line[column]);
    }
  }
  const std::string value = line["value"];
  if (value == "mem_limit") figure.outcome = Outcome::kMemLimit;
  if (value == "fail") figure.outcome = Outcome::kFail;
  const bool is_number = value.empty() || (Parse(value, figure.value) &&
                                           std::isfinite(figure.value) && figure.value >= 0);
  if (figure.outcome == Outcome::kOk && !is_number) {
    return fmt::format("value is a number, mem_limit or fail, not '{}'", value);
  }
  for (const auto& [column, number] :
       {std::pair("power_watts", &figure.watts), std::pair("price_usd", &figure.price_usd)}) {
    const std::string text = line[column];
    if (text.empty()) continue;
    if (!Parse(text, *number) || !std::isfinite(*number) || *number < 0) {
      return fmt::format("{} is a number, not '{}'", column, text);
    }
  }
  return "";
}

absl::Status CheckColumns(const CsvTable& table, std::string_view file_name) {
  for (const std::string& column : table.columns) {
    if (std::find(kColumns.begin(), kColumns.end(), column) == kColumns.end()) {
      return absl::InvalidArgumentError(fmt::format("{}: there is no column '{}'; it takes {}",
                                                    file_name, column, fmt::join(kColumns, ", ")));
    }
  }
  for (const std::string_view column : kNeeded) {
    if (std::find(table.columns.begin(), table.columns.end(), column) == table.columns.end()) {
      return absl::InvalidArgumentError(fmt::format("{}: column '{}' is missing; {} are needed",
                                                    file_name, column, fmt::join(kNeeded, ", ")));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddPublished(std::string_view csv, std::string_view file_name, const CardNames& names,
                          Cells& cells) {
  const absl::StatusOr<CsvTable> table = ReadCsv(csv);
  if (!table.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", file_name, Message(table.status())));
  }
  if (absl::Status status = CheckColumns(*table, file_name); !status.ok()) return status;
  std::vector<PublishedFigure> figures;
  std::string faults;
  size_t fault_count = 0;
  for (const CsvRow& row : table->rows) {
    const PublishedLine line(*table, row);
    PublishedFigure figure;
    const std::string fault = Fault(line, figure);
    if (!fault.empty()) {
      if (++fault_count <= kMostFaults) {
        faults += fmt::format("\n  line {}: {}", row.line, fault);
      }
      continue;
    }
    figure.card = names(line["card"]);
    figure.model = line["model"];
    figure.precision = line["precision"];
    figure.lane = line["lane"];
    figure.unit = line["unit"];
    const std::string framework = line["framework"], stack = line["stack"];
    figure.stack = framework + (framework.empty() || stack.empty() ? "" : " ") + stack;
    figures.push_back(std::move(figure));
  }
  if (fault_count > 0) {
    if (fault_count > kMostFaults)
      faults += fmt::format("\n  and {} more", fault_count - kMostFaults);
    return absl::InvalidArgumentError(
        fmt::format("{}: nothing was taken, since lines do not fit:{}", file_name, faults));
  }
  for (const PublishedFigure& figure : figures) cells.Add(figure);
  return absl::OkStatus();
}

}  // namespace assay::compare
