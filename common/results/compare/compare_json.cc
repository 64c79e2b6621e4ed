#include "common/results/compare/compare_json.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "common/results/csv.h"
#include "common/text/number_format.h"
#include "common/version.h"

namespace assay::compare {
namespace {

using Json = nlohmann::ordered_json;

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json NumberOrNull(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// A number, or the word `max`.
Json CountOrNull(const std::string& text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() ? Json(count) : TextOrNull(text);
}

void AddRatio(Json& to, const char* name, const std::optional<measure::Ratio>& ratio) {
  const bool sure = ratio && ratio->interval;
  to[name] = ratio ? Json(ratio->value) : Json(nullptr);
  to["ci95_low"] = sure ? Json(ratio->interval->low) : Json(nullptr);
  to["ci95_high"] = sure ? Json(ratio->interval->high) : Json(nullptr);
}

Json WorkloadJson(const WorkloadRow& row) {
  Json json;
  json["workload"] = row.workload;
  for (const auto& [name, value] : row.fingerprint) json["fingerprint"][name] = value;
  json["common"] = row.common;
  AddRatio(json, "ratio", row.ratio);
  json["verdict"] = TextOrNull(std::string(StandingName(row.verdict)));
  json["batch"] = CountOrNull(row.batch);
  json["baseline_batch"] = CountOrNull(row.base_batch);
  json["lane"] = TextOrNull(row.lane);
  json["layout"] = TextOrNull(row.layout);
  json["stack"] = TextOrNull(row.stack);
  json["throughput"] = row.value;
  json["unit"] = TextOrNull(row.unit);
  json["processes"] = row.processes;
  json["gpus_measured"] = row.gpus;
  json["spread_ratio"] = NumberOrNull(row.spread_ratio);
  json["samples_per_joule"] = NumberOrNull(row.samples_per_joule);
  json["per_watt"] = NumberOrNull(row.per_watt);
  json["memory_bought"] = NumberOrNull(row.memory_bought);
  json["marks"] = row.marks;
  return json;
}

Json SideJson(const Comparison& comparison, const Group& group, const SideRow& row) {
  Json json;
  json["card"] = comparison.by == By::kCard ? Json(row.side) : TextOrNull(group.card);
  if (comparison.by != By::kCard) json[std::string(ByName(comparison.by))] = row.side;
  if (comparison.by != By::kPrecision) json["precision"] = TextOrNull(group.precision);
  if (comparison.by != By::kLane) json["lane"] = TextOrNull(group.lane);
  json["gpus"] = CountOrNull(group.gpus);
  json["nodes"] = CountOrNull(group.nodes);
  json["marks"] = row.marks;
  AddRatio(json, "geomean", row.geomean);
  json["verdict"] = TextOrNull(std::string(StandingName(row.verdict)));
  json["coverage"] = {
      {"completed", row.completed}, {"asked", group.asked}, {"missing", row.missing}};
  json["per_workload"] = Json::array();
  for (const WorkloadRow& workload : row.workloads) {
    json["per_workload"].push_back(WorkloadJson(workload));
  }
  Json pairwise;
  AddRatio(pairwise, "ratio", row.pairwise);
  pairwise["verdict"] = TextOrNull(std::string(StandingName(row.pairwise_verdict)));
  pairwise["workloads"] = row.pairs;
  json["pairwise_geomean"] = std::move(pairwise);
  json["per_watt"] = NumberOrNull(row.per_watt);
  if (row.per_dollar) json["per_dollar"] = *row.per_dollar;
  json["memory_bought"] = NumberOrNull(row.memory_bought);
  if (comparison.by == By::kNode) json["deviation"] = NumberOrNull(row.deviation);
  return json;
}

constexpr const char* kCsvColumns[] = {
    "group_card",        "precision", "lane",       "gpus",           "nodes",        "side",
    "workload",          "common",    "batch",      "used_lane",      "used_layout",  "used_stack",
    "throughput",        "unit",      "processes",  "gpus_measured",  "spread_ratio", "ratio",
    "ci95_low",          "ci95_high", "verdict",    "baseline_batch", "completed",    "asked",
    "samples_per_joule", "per_watt",  "per_dollar", "memory_bought",  "deviation",    "marks"};

std::string Number(const std::optional<double>& value) {
  return value ? ShortestNumber(*value) : "";
}

std::string Line(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + CsvCell(cells[i]);
  return line + "\r\n";
}

// Ratio, low and high.
std::vector<std::string> RatioCells(const std::optional<measure::Ratio>& ratio) {
  if (!ratio) return {"", "", ""};
  if (!ratio->interval) return {ShortestNumber(ratio->value), "", ""};
  return {ShortestNumber(ratio->value), ShortestNumber(ratio->interval->low),
          ShortestNumber(ratio->interval->high)};
}

std::string Marks(const std::vector<std::string>& marks) {
  return fmt::format("{}", fmt::join(marks, ";"));
}

std::string SideLine(const std::vector<std::string>& head, const Group& group, const SideRow& row) {
  std::vector<std::string> cells = head;
  for (int i = 0; i < 11; ++i) cells.emplace_back();  // workload to spread_ratio
  for (std::string& cell : RatioCells(row.geomean)) cells.push_back(std::move(cell));
  for (std::string cell :
       {std::string(StandingName(row.verdict)), std::string(), fmt::format("{}", row.completed),
        fmt::format("{}", group.asked), std::string(), Number(row.per_watt), Number(row.per_dollar),
        Number(row.memory_bought), Number(row.deviation), Marks(row.marks)}) {
    cells.push_back(std::move(cell));
  }
  return Line(cells);
}

std::string WorkloadLine(const std::vector<std::string>& head, const WorkloadRow& row) {
  std::vector<std::string> cells = head;
  for (std::string cell :
       {row.workload, std::string(row.common ? "true" : "false"), row.batch, row.lane, row.layout,
        row.stack, ShortestNumber(row.value), row.unit, fmt::format("{}", row.processes),
        fmt::format("{}", row.gpus), Number(row.spread_ratio)}) {
    cells.push_back(std::move(cell));
  }
  for (std::string& cell : RatioCells(row.ratio)) cells.push_back(std::move(cell));
  for (std::string cell :
       {std::string(StandingName(row.verdict)), row.base_batch, std::string(), std::string(),
        Number(row.samples_per_joule), Number(row.per_watt), std::string(),
        Number(row.memory_bought), std::string(), Marks(row.marks)}) {
    cells.push_back(std::move(cell));
  }
  return Line(cells);
}

}  // namespace

std::string WriteComparisonJson(const Comparison& comparison) {
  Json json;
  json["baseline"] = TextOrNull(comparison.baseline);
  json["by"] = ByName(comparison.by);
  json["score"] = ScoreName(comparison.score);
  json["stack"] = comparison.stack == StackRule::kCommon ? "common" : "newest-per-card";
  json["rules_version"] = kRulesVersion;
  json["common_workloads"] = Json::array();
  json["cards"] = Json::array();
  for (const Group& group : comparison.groups) {
    json["common_workloads"].push_back({{"card", TextOrNull(group.card)},
                                        {"precision", TextOrNull(group.precision)},
                                        {"lane", TextOrNull(group.lane)},
                                        {"gpus", CountOrNull(group.gpus)},
                                        {"nodes", CountOrNull(group.nodes)},
                                        {"stack", TextOrNull(group.stack)},
                                        {"ranked", group.ranked},
                                        {"asked", group.asked},
                                        {"workloads", group.common}});
    for (const SideRow& row : group.sides)
      json["cards"].push_back(SideJson(comparison, group, row));
  }
  json["left_out"] = Json::array();
  for (const LeftOut& left : comparison.left_out) {
    json["left_out"].push_back({{"card", TextOrNull(left.side)},
                                {"workload", TextOrNull(left.workload)},
                                {"reason", left.reason},
                                {"cells", left.cells}});
  }
  json["bridges"] = Json::array();
  for (const Bridge& bridge : comparison.bridges) {
    Json one = {{"card", bridge.card},
                {"stack", bridge.stack},
                {"baseline_stack", bridge.base_stack},
                {"workloads", bridge.workloads}};
    AddRatio(one, "geomean", bridge.ratio);
    json["bridges"].push_back(std::move(one));
  }
  json["notes"] = comparison.notes;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string WriteComparisonCsv(const Comparison& comparison) {
  std::string csv = Line({std::begin(kCsvColumns), std::end(kCsvColumns)});
  for (const Group& group : comparison.groups) {
    for (const SideRow& row : group.sides) {
      const std::vector<std::string> head = {group.card, group.precision, group.lane,
                                             group.gpus, group.nodes,     row.side};
      csv += SideLine(head, group, row);
      for (const WorkloadRow& workload : row.workloads) csv += WorkloadLine(head, workload);
    }
  }
  return csv;
}

}  // namespace assay::compare
