// Trainer: one optimizer step, or one pass of inference, of any model.
//
// A step is forward, mean cross-entropy (over images, or over the tokens of all sequences),
// backward and SGD with momentum, over `accumulate` micro-batches. Nothing in it waits for the
// device. Gradients are freed, not zeroed, between steps; the update is LibTorch's fused kernel
// over all parameters at once.
//
// Owner: the runner, for one cell. Thread rule: one thread. Errors: LibTorch's exceptions.
#ifndef ASSAY_RUNNERS_TRAIN_TRAINER_H_
#define ASSAY_RUNNERS_TRAIN_TRAINER_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "runners/train/data/data_source.h"
#include "runners/train/models/model.h"
#include "runners/train/precision/loss_scaler.h"
#include "runners/train/precision/precision.h"

namespace assay::train {

// SGD as He et al. (2015) train ResNet, with a rate low enough to stay in band on random labels.
struct SgdOptions {
  double learning_rate = 0.001;
  double momentum = 0.9;
  double weight_decay = 1e-4;
};

struct StepOutput {
  at::Tensor loss;       // mean over the batch, fp32, one element; undefined in inference
  at::Tensor found_inf;  // 1 where the step was skipped; undefined without loss scaling
  at::Tensor logits;     // inference only
  at::Tensor input;      // what the model was given: the batch's, whole
};

class Trainer {
 public:
  Trainer(Model& model, Precision precision, int64_t accumulate, const SgdOptions& sgd = {});

  // What the model is placed for: TrainStep or InferStep.
  StepOutput Step(const Batch& batch);
  StepOutput TrainStep(const Batch& batch);
  StepOutput InferStep(const Batch& batch);

  // The gradients of the last step; empty before it.
  std::vector<at::Tensor> Gradients() const;
  // Frees them; a step does so at its start.
  void ReleaseGradients();
  // Without scaling null.
  const LossScaler* scaler() const { return scaler_ ? &*scaler_ : nullptr; }

 private:
  // Backward over one micro-batch; returns its share of the loss.
  at::Tensor Accumulate(const at::Tensor& images, const at::Tensor& labels);
  void Update();

  Model& model_;
  const Precision precision_;
  const c10::DeviceType device_type_;
  const int64_t accumulate_;
  const SgdOptions sgd_;
  std::optional<LossScaler> scaler_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> momenta_;
  std::vector<at::Tensor> gradients_;
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_TRAINER_H_
