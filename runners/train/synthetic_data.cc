#include "runners/train/synthetic_data.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>

#include <algorithm>

namespace assay::train {

int64_t BatchesThatFit(int64_t batch_bytes, int64_t device_memory_bytes) {
  return std::clamp<int64_t>(device_memory_bytes / 4 / std::max<int64_t>(batch_bytes, 1), 1,
                             SyntheticData::kBatches);
}

SyntheticData::SyntheticData(c10::Device device, int64_t device_memory_bytes,
                             c10::MemoryFormat layout, int64_t batch, ImageSize image,
                             int64_t classes) {
  const int64_t bytes =
      batch * 3 * image.height * image.width * static_cast<int64_t>(sizeof(float));
  const at::TensorOptions options = at::TensorOptions(at::kFloat).device(device);
  const int64_t count = BatchesThatFit(bytes, device_memory_bytes);
  for (int64_t i = 0; i < count; ++i) {
    at::Tensor images = at::empty({batch, 3, image.height, image.width}, options, layout);
    images.normal_();
    batches_.push_back(
        {images, at::randint(classes, {batch}, options.dtype(at::kLong)), static_cast<size_t>(i)});
  }
}

const Batch& SyntheticData::Next() {
  const Batch& batch = batches_[next_];
  next_ = (next_ + 1) % batches_.size();
  return batch;
}

}  // namespace assay::train
