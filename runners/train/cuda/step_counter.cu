#include "runners/train/cuda/step_counter.h"

namespace assay::train {
namespace {

constexpr int kThreads = kChecksumWords;  // one word each
static_assert(kThreads >= kMostInputs);

// Memory is read before the first barrier, each word by a thread of its own, so that its latencies
// pass together: the next step waits for this kernel.
__global__ void CountStepKernel(DeviceCounts* counts, const float* loss, const float* found_inf,
                                const uint32_t* input, int64_t words) {
  __shared__ unsigned long long checksum;
  const int thread = static_cast<int>(threadIdx.x);
  const DeviceCounts before = {
      counts->steps, counts->skipped, counts->non_finite, counts->inputs, {}};
  const uint64_t noted = thread < kMostInputs ? counts->checksums[thread] : 0;
  const bool skipped = found_inf != nullptr && *found_inf != 0.0f;
  const bool non_finite = loss != nullptr && !isfinite(*loss);
  unsigned long long share = input != nullptr ? ChecksumShare(input, words, thread, kThreads) : 0;
  if (thread == 0) checksum = 0;
  for (int apart = warpSize / 2; apart > 0; apart /= 2) {
    share ^= __shfl_xor_sync(0xffffffffU, share, apart);
  }
  __syncthreads();
  if (thread % warpSize == 0) atomicXor(&checksum, share);
  __syncthreads();
  const bool known = __syncthreads_or(thread < before.inputs && noted == checksum) != 0;
  if (thread != 0) return;
  counts->steps = before.steps + 1;
  if (skipped) counts->skipped = before.skipped + 1;
  if (non_finite) counts->non_finite = before.non_finite + 1;
  if (input != nullptr && !known && before.inputs < kMostInputs) {
    counts->checksums[before.inputs] = checksum;
    counts->inputs = before.inputs + 1;
  }
}

}  // namespace

cudaError_t CountStep(DeviceCounts* counts, const float* loss, const float* found_inf,
                      const uint32_t* input, int64_t words, cudaStream_t stream) {
  CountStepKernel<<<1, kThreads, 0, stream>>>(counts, loss, found_inf, words > 0 ? input : nullptr,
                                              words);
  return cudaGetLastError();
}

}  // namespace assay::train
