// A cell with `batch: max`: the largest batch is searched for by trials, each a fresh process of
// this program that takes kTrialSteps steps, and then measured in one more (docs/method.md,
// docs/adr/0002-largest-batch.md). This process opens no device.
//
// Pure but for the children that it is given. Thread rule: one thread.
#ifndef ASSAY_RUNNERS_COMMON_LARGEST_BATCH_CELL_H_
#define ASSAY_RUNNERS_COMMON_LARGEST_BATCH_CELL_H_

#include <cstdint>

#include "common/runner_protocol/cell_file.h"
#include "runners/common/child_runner.h"
#include "runners/common/record_writer.h"

namespace assay {

inline constexpr int64_t kTrialSteps = 20;
// A measurement that runs out of memory where a trial did not sends the search back so often.
inline constexpr int kMostMeasurements = 3;

// Fields of a trial's result, for the search alone: in use on the device at its end, by anyone, and
// all that the device has.
inline constexpr char kTrialUsedBytes[] = "trial_used_bytes";
inline constexpr char kTrialCapacityBytes[] = "trial_capacity_bytes";

// The result of the measurement with largest_batch and its kin added; mem_limit where not even the
// smallest batch fits. What else a trial or the measurement comes to is what the cell comes to.
// Passes on progress, and of the measurement alone its phases.
RunnerResult RunLargestBatch(const CellFile& cell, RecordWriter& records, const RunChild& run);

}  // namespace assay

#endif  // ASSAY_RUNNERS_COMMON_LARGEST_BATCH_CELL_H_
