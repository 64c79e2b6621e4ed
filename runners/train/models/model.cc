#include "runners/train/models/model.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <utility>

namespace assay::train {

at::Tensor ParameterSet::Register(const std::string& name, at::Tensor value) {
  // A memory format has a meaning for 4 dimensions only.
  const c10::MemoryFormat format =
      value.dim() == 4 ? placement_.layout : c10::MemoryFormat::Contiguous;
  at::Tensor placed = value.to(placement_.device).contiguous(format);
  placed.set_requires_grad(placement_.train);
  parameters_.push_back({name, placed});
  return placed;
}

at::Tensor ParameterSet::ConvWeight(const std::string& name, at::IntArrayRef shape) {
  const double fan_out = static_cast<double>(shape[0] * shape[2] * shape[3]);
  return Normal(name, shape, std::sqrt(2.0 / fan_out));
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

int64_t Model::ParameterCount() {
  int64_t count = 0;
  for (const NamedTensor& parameter : tensors_.parameters()) count += parameter.tensor.numel();
  return count;
}

}  // namespace assay::train
