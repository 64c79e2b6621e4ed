// DataSource: the batches that the steps take, in turn.
//
// Owner: the runner, for one cell. Thread rule: one thread.
#ifndef ASSAY_RUNNERS_TRAIN_DATA_DATA_SOURCE_H_
#define ASSAY_RUNNERS_TRAIN_DATA_DATA_SOURCE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>

#include <cstdint>
#include <memory>
#include <string>

#include "runners/train/device/device.h"
#include "runners/train/models/registry.h"

namespace assay::train {

struct Batch {
  at::Tensor images;  // the model's input: images {N, 3, H, W}, or tokens {N, T}, int64
  at::Tensor labels;  // int64: {N}, or the token after each, {N, T}
  size_t place = 0;   // which of the source's places on the device
};

// Shape of every batch of a source.
struct BatchShape {
  int64_t batch = 0;
  ImageSize image;
  int64_t classes = 0;
  c10::MemoryFormat layout = c10::MemoryFormat::ChannelsLast;
  InputKind input = InputKind::kImages;  // of tokens, image is {1, T}

  int64_t InputBytes() const;
};

class DataSource {
 public:
  // Batches that rotate, or as many as fit into a quarter of the memory where they are kept.
  static constexpr int64_t kBatches = 8;

  virtual ~DataSource() = default;
  // On the device, for the step that is queued next and for no other.
  virtual const Batch& Next() = 0;
  // Contents that rotate, and the places on the device that they are in: a batch's tensors are
  // those of its place, always.
  virtual int64_t batches() const = 0;
  virtual int64_t places() const = 0;
  // Whether the batch of the step after next is brought while the next is computed. Without, each
  // step waits for its own: one request at a time.
  virtual void BringAhead(bool ahead) = 0;
};

// How many batches of so many bytes are kept in so much memory.
int64_t BatchesThatFit(int64_t batch_bytes, int64_t memory_bytes);

// Random images with mean 0 and variance 1 and uniform labels, or sequences of uniform tokens, on
// `options`' device.
Batch RandomBatch(const BatchShape& shape, const at::TensorOptions& options);

// `name`: synthetic or host.
std::unique_ptr<DataSource> MakeDataSource(const std::string& name, Device& device,
                                           const BatchShape& shape);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_DATA_DATA_SOURCE_H_
