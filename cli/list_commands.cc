// ls, results and version.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/fitted_table.h"
#include "cli/printable.h"
#include "common/results/csv.h"
#include "common/results/json.h"
#include "common/status/status.h"
#include "common/version.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

// Row by row: a run of 100,000 cells is some hundred MiB as records. What was written before an
// error stays, and the exit code says that it is not all.
int StreamResults(CommandContext& context, Session& session) {
  constexpr size_t kPieceBytes = 64 << 10;
  std::vector<Field> fields;
  for (const FieldInfo& info : AllFields()) fields.push_back(info.field);
  const bool json = context.args.format == Format::kJson;
  std::string piece = json ? "[" : CsvHeader(fields);
  bool any = false;
  const auto take = [&](const Record& record) {
    piece += json ? (any ? ",\n" : "\n") + RecordToJson(record, fields) : CsvLine(record, fields);
    any = true;
    if (piece.size() < kPieceBytes) return;
    context.output.Out(piece);
    piece.clear();
  };
  absl::Status status = session.control().EachResult(context.args.run, take).status();
  // As Session::Call does, but not once rows were written.
  if (absl::IsUnavailable(status) && !any) {
    status = session.Open();
    if (status.ok()) status = session.control().EachResult(context.args.run, take).status();
  }
  // Before the first piece nothing was said yet: an unknown run leaves standard output empty.
  if (!status.ok() && !any) return FailCommand(context, status);
  if (json && status.ok()) piece += any ? "\n]\n" : "]\n";
  context.output.Out(piece);
  return status.ok() ? kExitOk : FailCommand(context, status);
}

}  // namespace

int LsCommand(CommandContext& context) {
  Session session = MakeSession(context);
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  auto runs = session.Call([](Control& control) { return control.ListRuns(); });
  if (!runs.ok()) return FailCommand(context, runs.status());
  std::erase_if(*runs,
                [&](const RunSummary& run) { return !HasLabels(run.labels, context.args.labels); });
  if (context.args.format == Format::kJson) {
    Json list = Json::array();
    for (const RunSummary& run : *runs) {
      list.push_back(
          {{"id", run.id},
           {"name", run.name},
           {"state", run.state},
           {"cells", run.cells},
           {"ok", run.ok},
           {"failed", run.failed},
           {"started_at", TextOrNull(TimeText(run.started_at_unix_ms))},
           {"labels", run.labels},
           {"slices", run.slices == 0 ? Json(nullptr)
                                      : Json{{"of", run.slices}, {"here", run.slices_here}}}});
    }
    context.output.Out(DumpJson({{"runs", list}}));
    return kExitOk;
  }
  if (runs->empty()) {
    const std::string where = context.args.LocalMode() ? " in " + context.state_dir : "";
    PrintNote(context,
              context.args.labels.empty()
                  ? fmt::format("no runs{}; `assay run FILE` makes one", where)
                  : fmt::format("no runs with {}{}", LabelsText(context.args.labels), where));
    return kExitOk;
  }
  const std::vector<FittedColumn> columns = {
      {"run", Align::kLeft, 0, 0, ""},     {"name", Align::kLeft, 12, 0, ""},
      {"state", Align::kLeft, 0, 0, ""},   {"cells", Align::kRight, 0, 0, ""},
      {"done", Align::kRight, 0, 2, ""},   {"ok", Align::kRight, 0, 0, ""},
      {"failed", Align::kRight, 0, 0, ""}, {"started", Align::kLeft, 0, 1, ""},
      {"labels", Align::kLeft, 12, 3, ""}, {"slices", Align::kLeft, 8, 0, ""}};
  std::vector<FittedRow> rows;
  for (const RunSummary& run : *runs) {
    std::string started = TimeText(run.started_at_unix_ms);
    // Seconds are enough for a person.
    if (const size_t dot = started.find('.'); dot != std::string::npos) {
      started = started.substr(0, dot) + "Z";
    }
    rows.push_back(
        {{run.id, run.name, run.state, fmt::format("{}", run.cells), fmt::format("{}", run.done),
          fmt::format("{}", run.ok), fmt::format("{}", run.failed), started, LabelsText(run.labels),
          SlicesText(run)},
         run.failed > 0 ? Color::kRed : Color::kNone});
  }
  context.output.Out(
      RenderFitted(columns, rows, TableWidth(context.output.out_fd()), context.output.out_color()));
  return kExitOk;
}

int ResultsCommand(CommandContext& context) {
  Session session = MakeSession(context);
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  if (context.args.format != Format::kTable) return StreamResults(context, session);
  const auto results =
      session.Call([&](Control& control) { return control.GetResults(context.args.run); });
  if (!results.ok()) return FailCommand(context, results.status());
  PrintResults(context, *results);
  return kExitOk;
}

int VersionCommand(CommandContext& context) {
  if (context.args.format == Format::kJson) {
    context.output.Out(DumpJson({{"version", kVersion},
                                 {"fleet_protocol", kFleetProtocol},
                                 {"runner_protocol", kRunnerProtocol},
                                 {"result_schema", kResultSchema},
                                 {"rules_version", kRulesVersion}}));
    return kExitOk;
  }
  context.output.Out(
      fmt::format("assay {}\nfleet protocol {}\nrunner protocol {}\nresult schema {}\nrules {}\n",
                  kVersion, kFleetProtocol, kRunnerProtocol, kResultSchema, kRulesVersion));
  return kExitOk;
}

}  // namespace assay::cli
