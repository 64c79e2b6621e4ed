// A model of three layers and a batch for it: what the tests train on the CPU.
#ifndef ASSAY_TESTS_UNIT_RUNNERS_TRAIN_TINY_MODEL_H_
#define ASSAY_TESTS_UNIT_RUNNERS_TRAIN_TINY_MODEL_H_

#include <ATen/ops/relu.h>

#include <memory>

#include "runners/train/data/synthetic_data.h"
#include "runners/train/models/layers.h"

namespace assay::train {

inline constexpr int64_t kTinyClasses = 10;

class TinyModel : public Model {
 public:
  explicit TinyModel(const Placement& placement)
      : Model(placement),
        conv_(tensors_, "conv", 3, 8, 3, 2),
        fc_(tensors_, "fc", 8, kTinyClasses) {}
  at::Tensor Forward(const at::Tensor& images) override {
    return fc_(at::relu(conv_(images)).mean({2, 3}));
  }
  int64_t classes() const override { return kTinyClasses; }

 private:
  Conv2d conv_;
  Linear fc_;
};

inline BatchShape TinyShape(int64_t n) {
  return {.batch = n,
          .image = {8, 8},
          .classes = kTinyClasses,
          .layout = c10::MemoryFormat::ChannelsLast};
}

// Eight batches of `n` images of 8x8.
inline SyntheticData TinyData(int64_t n) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  return SyntheticData(*device, TinyShape(n));
}

inline Batch FixedBatch(int64_t n) { return TinyData(n).Next(); }

}  // namespace assay::train

#endif  // ASSAY_TESTS_UNIT_RUNNERS_TRAIN_TINY_MODEL_H_
