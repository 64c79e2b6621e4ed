#include "runners/train/cuda/step_counter.h"

namespace assay::train {
namespace {

__global__ void CountStepKernel(int64_t* counts, const float* loss, const float* found_inf) {
  counts[0] += 1;
  if (found_inf != nullptr && *found_inf != 0.0f) counts[1] += 1;
  if (loss != nullptr && !isfinite(*loss)) counts[2] += 1;
}

}  // namespace

cudaError_t CountStep(int64_t* counts, const float* loss, const float* found_inf,
                      cudaStream_t stream) {
  CountStepKernel<<<1, 1, 0, stream>>>(counts, loss, found_inf);
  return cudaGetLastError();
}

}  // namespace assay::train
