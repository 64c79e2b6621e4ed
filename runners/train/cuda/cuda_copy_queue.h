// CudaCopyQueue: copies from pinned memory on a stream of their own, beside the steps.
//
// Owner: who asked the device for it. Thread rule: one thread, that of the steps.
#ifndef ASSAY_RUNNERS_TRAIN_CUDA_CUDA_COPY_QUEUE_H_
#define ASSAY_RUNNERS_TRAIN_CUDA_CUDA_COPY_QUEUE_H_

#include <c10/core/Device.h>

#include <memory>

#include "runners/train/device/device.h"

namespace assay::train {

std::unique_ptr<CopyQueue> MakeCudaCopyQueue(c10::DeviceIndex device);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_CUDA_CUDA_COPY_QUEUE_H_
