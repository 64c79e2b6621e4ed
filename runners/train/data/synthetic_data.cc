#include "runners/train/data/synthetic_data.h"

namespace assay::train {

SyntheticData::SyntheticData(Device& device, const BatchShape& shape) {
  // A batch so large that few fit must not fail for its own copies.
  const int64_t count = BatchesThatFit(shape.InputBytes(), device.MemoryBytes());
  for (int64_t i = 0; i < count; ++i) {
    batches_.push_back(RandomBatch(shape, at::TensorOptions(device.torch())));
    batches_.back().place = static_cast<size_t>(i);
  }
}

const Batch& SyntheticData::Next() {
  const Batch& batch = batches_[next_];
  next_ = (next_ + 1) % batches_.size();
  return batch;
}

}  // namespace assay::train
