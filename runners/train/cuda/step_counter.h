// The device's own count of what was done, and of what it was given: one small kernel behind each
// step, so that looking at the input adds no launch.
#ifndef ASSAY_RUNNERS_TRAIN_CUDA_STEP_COUNTER_H_
#define ASSAY_RUNNERS_TRAIN_CUDA_STEP_COUNTER_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "runners/train/device/input_checksum.h"

namespace assay::train {

// On the device; all zero at the start of a window.
struct DeviceCounts {
  int64_t steps, skipped, non_finite;
  int64_t inputs;  // different ones
  uint64_t checksums[kMostInputs];
};

// Counts a step; as skipped where *found_inf is not 0, as non-finite where *loss is not finite;
// notes the checksum of `words` words at `input`. All pointers are the device's; `loss`,
// `found_inf` and `input` may be null. Does not wait.
cudaError_t CountStep(DeviceCounts* counts, const float* loss, const float* found_inf,
                      const uint32_t* input, int64_t words, cudaStream_t stream);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_CUDA_STEP_COUNTER_H_
