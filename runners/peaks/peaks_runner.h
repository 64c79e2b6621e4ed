// PeaksRunner: the ceilings of a card, one figure a cell (docs/method.md, docs/adr/0003-peaks.md).
//
// Thread rule: one thread.
#ifndef ASSAY_RUNNERS_PEAKS_PEAKS_RUNNER_H_
#define ASSAY_RUNNERS_PEAKS_PEAKS_RUNNER_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runners/common/runner_main.h"
#include "runners/peaks/candidate.h"
#include "runners/peaks/timeline.h"

namespace assay::peaks {

class PeaksRunner final : public Runner {
 public:
  std::string Name() const override { return "assay-peaks"; }
  std::string Version() const override;
  // Throws NoBlas where there is a GPU and no cuBLAS; where there is no driver it only names no
  // versions.
  nlohmann::json StackInfo() override;
  std::vector<std::string> Models() const override;
  nlohmann::json Describe(const std::string& model) override;
  RunnerResult Run(const CellFile& cell, RecordWriter& records) override;
};

// What the cell alone shows not to be for this runner; nullopt: nothing.
std::optional<RunnerResult> Refuse(const CellFile& cell);

// Whether a card of the compute capability (major * 10 + minor) lacks the precision.
std::optional<RunnerResult> RefusePrecision(const std::string& precision, int compute_capability);

// The best of `candidates`, measured: `fields` gets the window and peak_shape. A wrong result is
// fail.
RunnerResult MeasurePeak(Timeline& timeline, const std::vector<Candidate>& candidates,
                         const StopRule& stop, nlohmann::json fields, RecordWriter& records);

}  // namespace assay::peaks

#endif  // ASSAY_RUNNERS_PEAKS_PEAKS_RUNNER_H_
