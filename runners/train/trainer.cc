#include "runners/train/trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>

namespace assay::train {

Trainer::Trainer(Model& model, Precision precision, int64_t accumulate, const SgdOptions& sgd)
    : model_(model),
      precision_(precision),
      device_type_(model.tensors().placement().device.type()),
      accumulate_(accumulate),
      sgd_(sgd) {
  for (const NamedTensor& parameter : model_.tensors().parameters()) {
    parameters_.push_back(parameter.tensor);
  }
  if (!model_.tensors().placement().train) return;
  // Zeros with no dampening give the first step that PyTorch's own `is_first_step` gives.
  for (const at::Tensor& parameter : parameters_) {
    momenta_.push_back(at::zeros_like(parameter.detach()));
  }
  if (precision_ == Precision::kAmpFp16) scaler_.emplace(model_.tensors().placement().device);
}

at::Tensor Trainer::Accumulate(const at::Tensor& images, const at::Tensor& labels) {
  at::Tensor loss;
  {
    const AutocastScope autocast(precision_, device_type_);
    loss = model_.Loss(images, labels);
  }
  if (accumulate_ > 1) loss = loss.div(static_cast<double>(accumulate_));
  (scaler_ ? scaler_->Scale(loss) : loss).backward();
  return loss.detach();
}

StepOutput Trainer::Step(const Batch& batch) {
  return model_.tensors().placement().train ? TrainStep(batch) : InferStep(batch);
}

void Trainer::ReleaseGradients() {
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  gradients_.clear();
}

StepOutput Trainer::TrainStep(const Batch& batch) {
  ReleaseGradients();
  const int64_t micro = batch.labels.size(0) / accumulate_;
  StepOutput output;
  output.input = batch.images;
  for (int64_t i = 0; i < accumulate_; ++i) {
    const at::Tensor share = accumulate_ == 1
                                 ? Accumulate(batch.images, batch.labels)
                                 : Accumulate(batch.images.narrow(0, i * micro, micro),
                                              batch.labels.narrow(0, i * micro, micro));
    output.loss = output.loss.defined() ? output.loss.add(share) : share;
  }
  Update();
  if (scaler_) output.found_inf = scaler_->found_inf();
  return output;
}

void Trainer::Update() {
  const at::NoGradGuard no_grad;
  gradients_.reserve(parameters_.size());
  for (const at::Tensor& parameter : parameters_) gradients_.push_back(parameter.grad());
  std::optional<at::Tensor> found_inf;
  if (scaler_) {
    scaler_->Unscale(gradients_);
    found_inf = scaler_->found_inf();
  }
  at::_fused_sgd_(parameters_, gradients_, momenta_, sgd_.weight_decay, sgd_.momentum,
                  sgd_.learning_rate, /*dampening=*/0.0, /*nesterov=*/false, /*maximize=*/false,
                  /*is_first_step=*/false, /*grad_scale=*/std::nullopt, found_inf);
  if (scaler_) scaler_->Update();
}

StepOutput Trainer::InferStep(const Batch& batch) {
  const c10::InferenceMode inference;
  const int64_t micro = batch.labels.size(0) / accumulate_;
  StepOutput output;
  output.input = batch.images;
  for (int64_t i = 0; i < accumulate_; ++i) {
    const AutocastScope autocast(precision_, device_type_);
    output.logits = model_.Forward(batch.images.narrow(0, i * micro, micro));
  }
  return output;
}

std::vector<at::Tensor> Trainer::Gradients() const { return gradients_; }

}  // namespace assay::train
