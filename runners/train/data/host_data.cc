#include "runners/train/data/host_data.h"

#include <ATen/ops/empty_like.h>

namespace assay::train {

HostData::HostData(Device& device, const BatchShape& shape) : queue_(device.MakeCopyQueue()) {
  const at::TensorOptions on_device(device.torch());
  const at::TensorOptions pinned =
      at::TensorOptions(at::kCPU).pinned_memory(device.torch().is_cuda());
  // Drawn on the device, since the host takes seconds for what the device does in milliseconds.
  const int64_t count = BatchesThatFit(shape.InputBytes(), HostMemoryBytes());
  for (int64_t i = 0; i < count; ++i) {
    const Batch drawn = RandomBatch(shape, on_device);
    Batch kept{at::empty_like(drawn.images, pinned), at::empty_like(drawn.labels, pinned), 0};
    kept.images.copy_(drawn.images);
    kept.labels.copy_(drawn.labels);
    host_.push_back(kept);
  }
  for (size_t place = 0; place < places_.size(); ++place) {
    places_[place] = {at::empty_like(host_[0].images, on_device),
                      at::empty_like(host_[0].labels, on_device), place};
  }
}

void HostData::Bring(size_t step) {
  const Batch& from = host_[step % host_.size()];
  const Batch& to = places_[step % places_.size()];
  queue_->WaitForSteps();
  queue_->Copy(to.images, from.images);
  queue_->Copy(to.labels, from.labels);
  brought_ = step + 1;
}

const Batch& HostData::Next() {
  const size_t step = next_++;
  if (brought_ <= step || !ahead_) Bring(step);
  queue_->StepsWait();
  // Behind the step before, whose place it takes; beside the one that is queued after this call.
  if (ahead_) Bring(step + 1);
  return places_[step % places_.size()];
}

}  // namespace assay::train
