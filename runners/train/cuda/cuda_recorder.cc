#include "runners/train/cuda/cuda_recorder.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <exception>
#include <string>
#include <utility>

#include "runners/train/failure.h"

namespace assay::train {
namespace {

class CudaRecording final : public Recording {
 public:
  void Replay() override { graph.replay(); }

  at::cuda::CUDAGraph graph;
};

// c10's MempoolId_t or c10::cuda's, by LibTorch's version.
using PoolId = decltype(at::cuda::graph_pool_handle());

// Ends a capture that failed; what the error was is known already, and what its end says besides
// is dropped.
void Abandon(std::unique_ptr<CudaRecording> recording, c10::DeviceIndex device, PoolId pool) {
  try {
    recording->graph.capture_end();  // throws before it lets go of the pool
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): dropped, see above
  }
  try {
    c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): dropped, see above
  }
  (void)cudaGetLastError();
  // Should the allocator ask it still, it must be there: a cell whose step cannot be recorded ends
  // with its process.
  [[maybe_unused]] const CudaRecording* const kept = recording.release();
}

}  // namespace

CudaRecorder::CudaRecorder(c10::DeviceIndex device)
    : device_(device), pool_(at::cuda::graph_pool_handle()) {
  c10::cuda::device_synchronize();
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_));
}

std::unique_ptr<Recording> CudaRecorder::Record(const std::function<void()>& work) {
  auto recording = std::make_unique<CudaRecording>();
  c10::cuda::device_synchronize();
  if (!recorded_) c10::cuda::CUDACachingAllocator::emptyCache();
  recording->graph.capture_begin(pool_);
  try {
    work();
    recording->graph.capture_end();
  } catch (const c10::OutOfMemoryError&) {
    Abandon(std::move(recording), device_, pool_);
    throw;
  } catch (const std::exception&) {
    Abandon(std::move(recording), device_, pool_);
    const std::string text = TextOfException(std::current_exception());
    if (IsRecordingError(text)) throw CannotRecord(text);
    throw;
  }
  recorded_ = true;
  return recording;
}

}  // namespace assay::train
