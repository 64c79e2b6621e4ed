#include "runners/train/data/data_source.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>

#include <algorithm>

#include "runners/train/data/host_data.h"
#include "runners/train/data/synthetic_data.h"

namespace assay::train {

int64_t BatchShape::InputBytes() const {
  const auto of_place =
      static_cast<int64_t>(input == InputKind::kTokens ? sizeof(int64_t) : 3 * sizeof(float));
  return batch * image.height * image.width * of_place;
}

int64_t BatchesThatFit(int64_t batch_bytes, int64_t memory_bytes) {
  return std::clamp<int64_t>(memory_bytes / 4 / std::max<int64_t>(batch_bytes, 1), 1,
                             DataSource::kBatches);
}

Batch RandomBatch(const BatchShape& shape, const at::TensorOptions& options) {
  if (shape.input == InputKind::kTokens) {
    const int64_t tokens = shape.image.width;
    const at::Tensor drawn =
        at::randint(shape.classes, {shape.batch, tokens + 1}, options.dtype(at::kLong));
    return {drawn.narrow(1, 0, tokens).contiguous(), drawn.narrow(1, 1, tokens).contiguous(), 0};
  }
  at::Tensor images = at::empty({shape.batch, 3, shape.image.height, shape.image.width},
                                options.dtype(at::kFloat), shape.layout);
  images.normal_();
  return {images, at::randint(shape.classes, {shape.batch}, options.dtype(at::kLong)), 0};
}

std::unique_ptr<DataSource> MakeDataSource(const std::string& name, Device& device,
                                           const BatchShape& shape) {
  if (name == "host") return std::make_unique<HostData>(device, shape);
  return std::make_unique<SyntheticData>(device, shape);
}

}  // namespace assay::train
