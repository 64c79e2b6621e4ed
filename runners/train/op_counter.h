// OpCounter: what a step does, counted over the operators that LibTorch's dispatcher really calls,
// forward and backward, while the counter lives.
//
// Floating-point operations are those of convolutions, matrix products and attention, a
// multiply-add being two, as model FLOPs are counted in the literature: forward and backward pass
// of what the model is, nothing of normalisation, activation and optimizer. A convolution's
// backward pass counts only the gradients that are asked for: the first layer needs none of its
// input.
//
// Bytes are what each outermost operator reads and writes: every tensor it is given once, every new
// or changed tensor once. Views move nothing. It is less than what kernels move (batch
// normalisation reads its input twice), and more than what reaches memory where tensors stay in a
// cache.
//
// Fused attention counts as the products that it is, scores whole whatever a mask leaves out, and
// nothing of what its backward pass computes again. Thread rule: one counter at a time in a process
// (a second one throws std::logic_error); operators on any thread are counted, since autograd runs
// on threads of its own.
#ifndef ASSAY_RUNNERS_TRAIN_OP_COUNTER_H_
#define ASSAY_RUNNERS_TRAIN_OP_COUNTER_H_

#include <ATen/record_function.h>

#include <cstdint>

#include "runners/train/lanes/lane.h"

namespace assay::train {

struct OpCounts {
  int64_t flops = 0;
  int64_t bytes = 0;
};

class OpCounter {
 public:
  OpCounter();
  ~OpCounter();
  OpCounter(const OpCounter&) = delete;
  OpCounter& operator=(const OpCounter&) = delete;

  OpCounts counts() const;

 private:
  at::CallbackHandle handle_;
};

// A lane whose first step is counted. That one runs operator by operator in every lane, since it is
// before any recording.
class CountedLane final : public Lane {
 public:
  explicit CountedLane(Lane& lane) : lane_(lane) {}
  StepOutput Step() override;
  int64_t PrimingSteps() const override { return lane_.PrimingSteps(); }
  // Of the first step; zeros before it.
  const OpCounts& counts() const { return counts_; }

 private:
  Lane& lane_;
  bool counted_ = false;
  OpCounts counts_;
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_OP_COUNTER_H_
