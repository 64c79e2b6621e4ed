// CudaRecorder: recordings as CUDA Graphs (LibTorch's at::cuda::CUDAGraph), on a stream of their
// own, since the default stream cannot be captured.
//
// Owner: the CUDA device. Thread rule: one thread; the current stream is that thread's.
#ifndef ASSAY_RUNNERS_TRAIN_CUDA_CUDA_RECORDER_H_
#define ASSAY_RUNNERS_TRAIN_CUDA_CUDA_RECORDER_H_

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <utility>

#include "runners/train/device/device.h"

namespace assay::train {

class CudaRecorder {
 public:
  // Waits for the device and makes a stream from LibTorch's pool the current one.
  explicit CudaRecorder(c10::DeviceIndex device);

  // As Device::Record. Gives memory that is cached and not in use back to the device before the
  // first one, since a graph's pool cannot take it: else a recorded cell would need that of an
  // eager one beside its own.
  std::unique_ptr<Recording> Record(const std::function<void()>& work);

 private:
  const c10::DeviceIndex device_;
  const std::pair<unsigned long long, unsigned long long> pool_;  // LibTorch's MempoolId_t
  bool recorded_ = false;
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_CUDA_CUDA_RECORDER_H_
