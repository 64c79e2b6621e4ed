#include "runners/train/data/data_source.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>

#include <algorithm>

#include "runners/train/data/host_data.h"
#include "runners/train/data/synthetic_data.h"

namespace assay::train {

int64_t BatchShape::ImageBytes() const {
  return batch * 3 * image.height * image.width * static_cast<int64_t>(sizeof(float));
}

int64_t BatchesThatFit(int64_t batch_bytes, int64_t memory_bytes) {
  return std::clamp<int64_t>(memory_bytes / 4 / std::max<int64_t>(batch_bytes, 1), 1,
                             DataSource::kBatches);
}

Batch RandomBatch(const BatchShape& shape, const at::TensorOptions& options) {
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
