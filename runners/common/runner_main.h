// RunnerMain: the frame that every runner program shares. Options, cell file, records, lifeline,
// the last line of defence against exceptions, and the exit code; the runner brings the rest.
#ifndef ASSAY_RUNNERS_COMMON_RUNNER_MAIN_H_
#define ASSAY_RUNNERS_COMMON_RUNNER_MAIN_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/runner_protocol/cell_file.h"
#include "runners/common/record_writer.h"

namespace assay {

class Runner {
 public:
  virtual ~Runner() = default;
  virtual std::string Name() const = 0;  // assay-train
  virtual std::string Version() const = 0;
  // One JSON object: runner, protocol, versions, models, modes, precisions, lanes, layouts,
  // arch_list, device_kinds, max_world_size, simulated.
  virtual nlohmann::json StackInfo() = 0;
  virtual std::vector<std::string> Models() const = 0;
  // model, parameters, flops_per_sample, sample_unit; null for a model that is not known.
  virtual nlohmann::json Describe(const std::string& model) = 0;
  // What starts this program once more; a test may name another.
  virtual std::string Program() const { return "/proc/self/exe"; }
  // Runs the cell, which never has `batch: max`: RunnerMain starts this program for each batch
  // instead (largest_batch_cell.h), with trial_steps where nothing is to be measured. Hello is
  // written before; Run writes joined, phases and progress and returns the
  // result, which RunnerMain writes together with process_start_seconds and runner_version where
  // they are not in it. An std::exception that leaves Run becomes fail, runner_error, what();
  // BadInput exits 2.
  virtual RunnerResult Run(const CellFile& cell, RecordWriter& records) = 0;
};

// Returns the exit code for main. Never throws. Call BootNowNanoseconds() as main's first
// statement.
int RunnerMain(int argc, const char* const* argv, int64_t main_at_boot_ns, Runner& runner);

}  // namespace assay

#endif  // ASSAY_RUNNERS_COMMON_RUNNER_MAIN_H_
