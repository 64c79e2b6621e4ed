// plan: what a matrix would measure. Asks a coordinator only when --coordinator is given.
#include <fmt/core.h>

#include <optional>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/fitted_table.h"
#include "cli/printable.h"
#include "common/matrix/matrix.h"
#include "common/matrix/plan.h"
#include "common/results/csv.h"
#include "common/results/json.h"
#include "common/status/status.h"
#include "common/text/number_format.h"

namespace assay::cli {
namespace {

std::string BatchText(int64_t batch) {
  return batch == kBatchMax ? "max" : fmt::format("{}", batch);
}

void SetWord(Record& record, Field field, const std::string& text) {
  if (!text.empty()) record.SetText(field, text);
}

Record ToRecord(const PlanRow& row) {
  Record record;
  const Spec& spec = row.spec;
  SetWord(record, Field::kKey, spec.key);
  (void)record.Set(Field::kIndex, int64_t{spec.index});
  SetWord(record, Field::kCard, row.card);
  SetWord(record, Field::kStack, spec.stack);
  SetWord(record, Field::kModel, spec.model);
  SetWord(record, Field::kMode, spec.mode);
  SetWord(record, Field::kPrecision, spec.precision);
  SetWord(record, Field::kBatch, BatchText(spec.batch));
  SetWord(record, Field::kLane, spec.lane);
  SetWord(record, Field::kLayout, spec.layout);
  (void)record.Set(Field::kAccumulate, spec.accumulate);
  SetWord(record, Field::kScaling, spec.scaling);
  SetWord(record, Field::kImage, spec.image);
  (void)record.Set(Field::kGpus, spec.gpus);
  (void)record.Set(Field::kNodes, spec.nodes);
  (void)record.Set(Field::kRepeat, row.repeat);
  if (row.feasible) (void)record.Set(Field::kFeasible, *row.feasible);
  SetWord(record, Field::kReason, row.reason);
  return record;
}

std::vector<Field> PlanFields() {
  std::vector<Field> fields;
  for (const FieldInfo& field : AllFields()) {
    if (field.source == FieldSource::kPlan) fields.push_back(field.field);
  }
  return fields;
}

void PrintPlanRecords(CommandContext& context, const Plan& plan) {
  std::vector<Record> records;
  records.reserve(plan.rows.size());
  for (const PlanRow& row : plan.rows) records.push_back(ToRecord(row));
  const std::vector<Field> fields = PlanFields();
  if (context.args.format == Format::kCsv) {
    context.output.Out(WriteCsv(records, fields));
    return;
  }
  std::string text = "[";
  for (size_t i = 0; i < records.size(); ++i) {
    text += (i == 0 ? "\n" : ",\n") + RecordToJson(records[i], fields);
  }
  context.output.Out(text + (records.empty() ? "]\n" : "\n]\n"));
}

std::string Unless(int64_t value, int64_t usual) {
  return value == usual ? "" : fmt::format("{}", value);
}

void PrintPlanTable(CommandContext& context, const Matrix& matrix, const Plan& plan) {
  const std::vector<FittedColumn> columns = {
      {"model", Align::kLeft, 12, 0, " "},         {"mode", Align::kLeft, 0, 0, " "},
      {"precision", Align::kLeft, 0, 0, " "},      {"batch", Align::kRight, 0, 0, "batch "},
      {"lane", Align::kLeft, 0, 0, " "},           {"layout", Align::kLeft, 0, 20, " "},
      {"image", Align::kLeft, 0, 30, " "},         {"acc", Align::kRight, 0, 31, "accumulate "},
      {"scaling", Align::kLeft, 0, 29, " "},       {"gpus", Align::kRight, 0, 32, "gpus "},
      {"nodes", Align::kRight, 0, 33, "nodes "},   {"stack", Align::kLeft, 12, 21, " "},
      {"card", Align::kLeft, 12, 0, " "},          {"target", Align::kLeft, 12, 34, " "},
      {"repeat", Align::kRight, 0, 22, "repeat "}, {"can run", Align::kLeft, 0, 0, ""}};
  std::vector<FittedRow> rows;
  for (const PlanRow& row : plan.rows) {
    const Spec& spec = row.spec;
    std::string can;
    Color color = Color::kNone;
    if (row.feasible) {
      can = *row.feasible ? "yes" : "no: " + row.reason;
      if (!*row.feasible) color = Color::kYellow;
      if (*row.feasible && !row.warning.empty()) can = "yes, may not fit";
    }
    rows.push_back({{spec.model, spec.mode, spec.precision, BatchText(spec.batch), spec.lane,
                     spec.layout == "channels-last" ? "" : spec.layout, spec.image,
                     Unless(spec.accumulate, 1), spec.scaling == "weak" ? "" : spec.scaling,
                     Unless(spec.gpus, 1), Unless(spec.nodes, 1), spec.stack, row.card,
                     row.target == row.card ? "" : row.target, fmt::format("{}", row.repeat), can},
                    color});
  }
  Output& output = context.output;
  const std::string name = matrix.name.empty() ? "" : Printable(matrix.name) + ": ";
  output.Out(RenderFitted(columns, rows, TableWidth(output.out_fd()), output.out_color()));
  std::string line = name + Counted(plan.specs, "spec");
  // With no fleet the number of targets is not known, and 1 stands for each of them.
  const bool fleet = !plan.rows.empty() && plan.rows.front().feasible.has_value();
  if (fleet) line += " on " + Counted(plan.targets, "target");
  line += fmt::format(", {}{}", Counted(plan.cells, "cell"), fleet ? "" : " for each target");
  if (plan.infeasible_cells > 0) line += fmt::format(", {} cannot run", plan.infeasible_cells);
  line += fmt::format("; one after another they take at most {}{}\n",
                      HumanDuration(plan.upper_bound_seconds), fleet ? "" : " on each");
  output.Out(line);
}

// The sentences of what cannot run, each once.
void PrintReasons(CommandContext& context, const Plan& plan) {
  std::vector<std::string> told;
  for (const PlanRow& row : plan.rows) {
    if (row.feasible.value_or(true) || row.message.empty()) continue;
    if (std::find(told.begin(), told.end(), row.message) != told.end()) continue;
    if (told.size() == 10) {
      PrintNote(context, "... (more of them)");
      return;
    }
    told.push_back(row.message);
    PrintNote(context, fmt::format("cannot run: {}", row.message));
  }
}

absl::StatusOr<std::optional<std::vector<PlanCard>>> Cards(CommandContext& context,
                                                           const Matrix& matrix) {
  if (!context.args.cards.empty()) {
    ASSAY_ASSIGN_OR_RETURN(auto cards, PlanCardsFromNames(context.args.cards));
    return std::optional(std::move(cards));
  }
  if (!context.args.fleet) return std::optional<std::vector<PlanCard>>();
  Session session = MakeSession(context);
  ASSAY_RETURN_IF_ERROR(session.Open());
  ASSAY_ASSIGN_OR_RETURN(const auto agents,
                         session.Call([](Control& control) { return control.ListAgents(""); }));
  std::vector<NodeInventory> nodes;
  for (const AgentSummary& agent : agents) nodes.push_back(agent.inventory);
  return std::optional(PlanCardsFromFleet(nodes, matrix.select));
}

}  // namespace

int PlanCommand(CommandContext& context) {
  if (context.args.schema) {
    std::string schema = MatrixJsonSchema();
    if (schema.empty() || schema.back() != '\n') schema += '\n';
    context.output.Out(schema);
    return kExitOk;
  }
  const auto text = ReadMatrixText(context.args.file);
  if (!text.ok()) return FailCommand(context, text.status());
  MatrixOptions options;
  options.allow_many = context.args.yes;
  const auto matrix = ParseMatrix(*text, MatrixFileName(context.args.file), options);
  if (!matrix.ok()) return FailCommand(context, matrix.status());
  const auto cards = Cards(context, *matrix);
  if (!cards.ok()) return FailCommand(context, cards.status());
  const Plan plan = BuildPlan(*matrix, *cards);
  if (context.args.format == Format::kTable) {
    PrintPlanTable(context, *matrix, plan);
    PrintReasons(context, plan);
  } else {
    PrintPlanRecords(context, plan);
  }
  if (!context.args.quiet) {
    constexpr size_t kMostWarnings = 20;
    for (size_t i = 0; i < plan.warnings.size() && i < kMostWarnings; ++i) {
      context.output.Warning(plan.warnings[i]);
    }
    if (plan.warnings.size() > kMostWarnings) {
      context.output.Warning(fmt::format("and {} more", plan.warnings.size() - kMostWarnings));
    }
  }
  return kExitOk;
}

}  // namespace assay::cli
