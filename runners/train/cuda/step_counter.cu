#include "runners/train/cuda/step_counter.h"

namespace assay::train {
namespace {

constexpr int kThreads = 32;  // one warp

__global__ void CountStepKernel(DeviceCounts* counts, const float* loss, const float* found_inf,
                                const uint32_t* input, int64_t words) {
  uint64_t checksum = 0;
  if (input != nullptr) {
    checksum = ChecksumShare(input, words, threadIdx.x, kThreads);
    for (int apart = kThreads / 2; apart > 0; apart /= 2) {
      checksum ^= __shfl_xor_sync(0xffffffffU, static_cast<unsigned long long>(checksum), apart);
    }
  }
  if (threadIdx.x != 0) return;
  counts->steps += 1;
  if (found_inf != nullptr && *found_inf != 0.0f) counts->skipped += 1;
  if (loss != nullptr && !isfinite(*loss)) counts->non_finite += 1;
  if (input != nullptr) NoteChecksum(checksum, &counts->inputs, counts->checksums);
}

}  // namespace

cudaError_t CountStep(DeviceCounts* counts, const float* loss, const float* found_inf,
                      const uint32_t* input, int64_t words, cudaStream_t stream) {
  CountStepKernel<<<1, kThreads, 0, stream>>>(counts, loss, found_inf, words > 0 ? input : nullptr,
                                              words);
  return cudaGetLastError();
}

}  // namespace assay::train
