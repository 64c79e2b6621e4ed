#include "runners/train/cuda/cuda_copy_queue.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <stdexcept>

namespace assay::train {
namespace {

// A mark in one stream that another waits for. What waits, waits for the mark as it is at that
// moment, so that one object serves again and again.
class Mark {
 public:
  Mark() { C10_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~Mark() { cudaEventDestroy(event_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  // `later` goes on when `earlier` has done all that it has now.
  void Order(cudaStream_t earlier, cudaStream_t later) {
    C10_CUDA_CHECK(cudaEventRecord(event_, earlier));
    C10_CUDA_CHECK(cudaStreamWaitEvent(later, event_, 0));
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaCopyQueue final : public CopyQueue {
 public:
  explicit CudaCopyQueue(c10::DeviceIndex device)
      : device_(device),
        copies_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device).stream()) {}

  void WaitForSteps() override { steps_done_.Order(Steps(), copies_); }

  void Copy(const at::Tensor& to, const at::Tensor& from) override {
    // The bytes as they lie: both are dense and laid out alike.
    if (to.nbytes() != from.nbytes() || to.strides() != from.strides()) {
      throw std::logic_error("a copy between tensors of different layout");
    }
    C10_CUDA_CHECK(cudaMemcpyAsync(to.data_ptr(), from.data_ptr(), to.nbytes(),
                                   cudaMemcpyHostToDevice, copies_));
  }

  void StepsWait() override { copies_done_.Order(copies_, Steps()); }

 private:
  cudaStream_t Steps() const { return c10::cuda::getCurrentCUDAStream(device_).stream(); }

  const c10::DeviceIndex device_;
  const cudaStream_t copies_;
  Mark steps_done_, copies_done_;
};

}  // namespace

std::unique_ptr<CopyQueue> MakeCudaCopyQueue(c10::DeviceIndex device) {
  return std::make_unique<CudaCopyQueue>(device);
}

}  // namespace assay::train
