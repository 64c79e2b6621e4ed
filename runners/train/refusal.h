// Refusal: why this runner cannot run a cell, before any device is touched. Pure.
#ifndef ASSAY_RUNNERS_TRAIN_REFUSAL_H_
#define ASSAY_RUNNERS_TRAIN_REFUSAL_H_

#include <optional>

#include "common/runner_protocol/cell_file.h"
#include "runners/common/record_writer.h"

namespace assay::train {

// `unsupported` with reason and sentence, or nullopt where the cell can run.
std::optional<RunnerResult> Refuse(const CellFile& cell);

// The same for what depends on the GPU: its compute capability (major * 10 + minor; 0: a CPU).
// TF32 and bfloat16 need 8.0, float16 5.3.
std::optional<RunnerResult> RefusePrecision(const std::string& precision, int compute_capability);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_REFUSAL_H_
