// The device's own count of what was done: one thread of one small kernel behind each step.
#ifndef ASSAY_RUNNERS_TRAIN_CUDA_STEP_COUNTER_H_
#define ASSAY_RUNNERS_TRAIN_CUDA_STEP_COUNTER_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::train {

// counts[0] += 1; counts[1] += 1 where *found_inf is not 0; counts[2] += 1 where *loss is not
// finite. All pointers are the device's; `loss` and `found_inf` may be null. Does not wait.
cudaError_t CountStep(int64_t* counts, const float* loss, const float* found_inf,
                      cudaStream_t stream);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_CUDA_STEP_COUNTER_H_
