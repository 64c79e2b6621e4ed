#include "runners/train/models/model.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <utility>

namespace assay::train {

at::Tensor ParameterSet::Place(const at::Tensor& value) const {
  // A memory format has a meaning for 4 dimensions only.
  const c10::MemoryFormat format =
      value.dim() == 4 ? placement_.layout : c10::MemoryFormat::Contiguous;
  return value.to(placement_.device).contiguous(format);
}

at::Tensor ParameterSet::Register(const std::string& name, at::Tensor value) {
  at::Tensor placed = Place(value);
  placed.set_requires_grad(placement_.train);
  parameters_.push_back({name, placed});
  return placed;
}

namespace {

at::Tensor DrawnConvWeight(at::IntArrayRef shape) {
  const double fan_out = static_cast<double>(shape[0] * shape[2] * shape[3]);
  at::Tensor value = at::empty(shape, at::kFloat);
  value.normal_(0.0, std::sqrt(2.0 / fan_out));
  return value;
}

}  // namespace

at::Tensor ParameterSet::ConvWeight(const std::string& name, at::IntArrayRef shape) {
  return Register(name, DrawnConvWeight(shape));
}

at::Tensor ParameterSet::FrozenConvWeight(const std::string& name, at::IntArrayRef shape) {
  buffers_.push_back({name, Place(DrawnConvWeight(shape))});
  return buffers_.back().tensor;
}

at::Tensor ParameterSet::Normal(const std::string& name, at::IntArrayRef shape, double deviation) {
  at::Tensor value = at::empty(shape, at::kFloat);
  value.normal_(0.0, deviation);
  return Register(name, std::move(value));
}

at::Tensor ParameterSet::Uniform(const std::string& name, at::IntArrayRef shape, double bound) {
  at::Tensor value = at::empty(shape, at::kFloat);
  value.uniform_(-bound, bound);
  return Register(name, std::move(value));
}

at::Tensor ParameterSet::Constant(const std::string& name, at::IntArrayRef shape, double value) {
  return Register(name, at::full(shape, value, at::kFloat));
}

at::Tensor ParameterSet::Buffer(const std::string& name, at::IntArrayRef shape, double value) {
  at::Tensor placed = at::full(shape, value, at::kFloat).to(placement_.device);
  buffers_.push_back({name, placed});
  return placed;
}

at::Tensor Model::Loss(const at::Tensor& input, const at::Tensor& labels) {
  const at::Tensor logits = Forward(input);
  return at::cross_entropy_loss(logits.flatten(0, -2), labels.flatten());
}

int64_t Model::ParameterCount() {
  int64_t count = 0;
  for (const NamedTensor& parameter : tensors_.parameters()) count += parameter.tensor.numel();
  return count;
}

}  // namespace assay::train
