#include "runners/common/runner_main.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>

#include "common/runner_protocol/records.h"
#include "runners/common/bad_input.h"
#include "runners/common/cell_reader.h"
#include "runners/common/child_runner.h"
#include "runners/common/free_memory.h"
#include "runners/common/largest_batch_cell.h"
#include "runners/common/lifeline.h"
#include "runners/common/process_start.h"
#include "runners/common/runner_options.h"

namespace assay {
namespace {

constexpr double kLifelineByHandSeconds = 10;

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string Dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

RunnerResult RunLargest(const RunnerOptions& options, const CellFile& cell, const Runner& runner,
                        RecordWriter& records) {
  if (cell.world_size != 1) {
    return {"unsupported", "value_not_in_stack",
            "batch max is found by one rank alone yet; give a number with several",
            nlohmann::json::object()};
  }
  if (cell.device_kind == "cpu") LimitMemoryToWhatIsFree();
  const double lifeline_seconds =
      options.lifeline_fd >= 0 ? options.lifeline_seconds : kLifelineByHandSeconds;
  return RunLargestBatch(cell, records, [&](const CellFile& child, const OnChildRecord& on_record) {
    return RunChildProcess(runner.Program(), lifeline_seconds, child, on_record);
  });
}

int RunCell(const RunnerOptions& options, int64_t main_at_boot_ns, Runner& runner) {
  const std::unique_ptr<RecordWriter> records = RecordWriter::Open(options.records);
  std::unique_ptr<Lifeline> lifeline;
  if (options.lifeline_fd >= 0) {
    lifeline = std::make_unique<Lifeline>(options.lifeline_fd, options.lifeline_seconds);
  }
  const CellFile cell = ReadCellFile(options.cell);
  records->Hello(runner.Name(), runner.Version(), cell.device_uuid);
  RunnerResult result;
  try {
    result = cell.spec.batch == kBatchMax ? RunLargest(options, cell, runner, *records)
                                          : runner.Run(cell, *records);
  } catch (const BadInput&) {
    throw;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", runner.Name().c_str(), error.what());
    result = {"fail", "runner_error", error.what(), nlohmann::json::object()};
  }
  if (!result.fields.is_object()) result.fields = nlohmann::json::object();
  if (const auto seconds = ProcessStartSeconds(cell.spawned_at_boot_ns, main_at_boot_ns)) {
    result.fields.emplace("process_start_seconds", *seconds);
  }
  result.fields.emplace("runner_version", runner.Version());
  records->Result(result);
  return RunnerExitCode(result.outcome);
}

int Act(const RunnerOptions& options, int64_t main_at_boot_ns, Runner& runner) {
  using Action = RunnerOptions::Action;
  switch (options.action) {
    case Action::kHelp:
      Print(RunnerUsage(runner.Name()));
      return record::kExitOk;
    case Action::kVersion:
      Print(runner.Name() + " " + runner.Version() + "\n");
      return record::kExitOk;
    case Action::kStackInfo:
      Print(Dump(runner.StackInfo()));
      return record::kExitOk;
    case Action::kList:
      for (const std::string& model : runner.Models()) Print(model + "\n");
      return record::kExitOk;
    case Action::kDescribe: {
      const nlohmann::json description = runner.Describe(options.model);
      if (description.is_null()) {
        throw BadInput("unknown model '" + options.model + "': --list names the models");
      }
      Print(Dump(description));
      return record::kExitOk;
    }
    case Action::kCell:
      return RunCell(options, main_at_boot_ns, runner);
  }
  return record::kExitFail;
}

}  // namespace

int RunnerMain(int argc, const char* const* argv, int64_t main_at_boot_ns, Runner& runner) {
  // Set for every action: a reader of --list that left early is no crash either.
  signal(SIGPIPE, SIG_IGN);
  try {
    return Act(ParseRunnerOptions(argc, argv), main_at_boot_ns, runner);
  } catch (const BadInput& error) {
    std::fprintf(stderr, "%s: %s\n", runner.Name().c_str(), error.what());
    return record::kExitBadInput;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", runner.Name().c_str(), error.what());
    return record::kExitFail;
  }
}

}  // namespace assay
