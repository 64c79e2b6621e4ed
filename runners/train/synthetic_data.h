// SyntheticData: fixed random batches, made once on the device and taken in turn, so that no step
// sees the batch of the one before and nothing is copied while measuring.
//
// At least kBatches of them, or as many as fit into a quarter of the device's memory (at least
// one): a batch that large must not fail for its own copies. Images are fp32 with mean 0 and
// variance 1, labels are uniform.
#ifndef ASSAY_RUNNERS_TRAIN_SYNTHETIC_DATA_H_
#define ASSAY_RUNNERS_TRAIN_SYNTHETIC_DATA_H_

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>

#include <cstdint>
#include <vector>

#include "runners/train/models/registry.h"

namespace assay::train {

struct Batch {
  at::Tensor images;  // {N, 3, H, W}
  at::Tensor labels;  // {N}, int64
  size_t place = 0;   // which of the source's batches
};

class SyntheticData {
 public:
  static constexpr int64_t kBatches = 8;

  SyntheticData(c10::Device device, int64_t device_memory_bytes, c10::MemoryFormat layout,
                int64_t batch, ImageSize image, int64_t classes);

  const Batch& Next();
  int64_t batches() const { return static_cast<int64_t>(batches_.size()); }

 private:
  std::vector<Batch> batches_;
  size_t next_ = 0;
};

// How many batches of so many bytes are kept.
int64_t BatchesThatFit(int64_t batch_bytes, int64_t device_memory_bytes);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_SYNTHETIC_DATA_H_
