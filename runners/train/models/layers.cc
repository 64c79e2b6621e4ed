#include "runners/train/models/layers.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>

#include <array>
#include <cmath>

namespace assay::train {

Conv2d::Conv2d(ParameterSet& tensors, const std::string& name, int64_t in, int64_t out,
               int64_t kernel, int64_t stride, int64_t groups, bool bias,
               std::optional<int64_t> padding)
    : weight_(tensors.ConvWeight(name + ".weight", {out, in / groups, kernel, kernel})),
      stride_(stride),
      padding_(padding.value_or(kernel / 2)),
      groups_(groups) {
  if (bias) bias_ = tensors.Constant(name + ".bias", {out}, 0.0);
}

at::Tensor Conv2d::operator()(const at::Tensor& input) const {
  const std::array<int64_t, 2> stride = {stride_, stride_};
  const std::array<int64_t, 2> padding = {padding_, padding_};
  const std::array<int64_t, 2> dilation = {1, 1};
  return at::conv2d(input, weight_, bias_, stride, padding, dilation, groups_);
}

BatchNorm2d::BatchNorm2d(ParameterSet& tensors, const std::string& name, int64_t features)
    : weight_(tensors.Constant(name + ".weight", {features}, 1.0)),
      bias_(tensors.Constant(name + ".bias", {features}, 0.0)),
      running_mean_(tensors.Buffer(name + ".running_mean", {features}, 0.0)),
      running_var_(tensors.Buffer(name + ".running_var", {features}, 1.0)),
      train_(tensors.placement().train) {}

at::Tensor BatchNorm2d::operator()(const at::Tensor& input) const {
  return at::batch_norm(input, weight_, bias_, running_mean_, running_var_, train_,
                        /*momentum=*/0.1, /*eps=*/1e-5, /*cudnn_enabled=*/true);
}

Linear::Linear(ParameterSet& tensors, const std::string& name, int64_t in, int64_t out)
    : weight_(tensors.Uniform(name + ".weight", {out, in}, 1.0 / std::sqrt(in))),
      bias_(tensors.Uniform(name + ".bias", {out}, 1.0 / std::sqrt(in))) {}

Linear::Linear(ParameterSet& tensors, const std::string& name, int64_t in, int64_t out,
               double deviation, bool bias)
    : weight_(tensors.Normal(name + ".weight", {out, in}, deviation)) {
  if (bias) bias_ = tensors.Constant(name + ".bias", {out}, 0.0);
}

at::Tensor Linear::operator()(const at::Tensor& input) const {
  return at::linear(input, weight_, bias_);
}

LayerNorm::LayerNorm(ParameterSet& tensors, const std::string& name, int64_t features)
    : weight_(tensors.Constant(name + ".weight", {features}, 1.0)),
      bias_(tensors.Constant(name + ".bias", {features}, 0.0)) {}

at::Tensor LayerNorm::operator()(const at::Tensor& input) const {
  return at::layer_norm(input, weight_.sizes(), weight_, bias_, /*eps=*/1e-5);
}

}  // namespace assay::train
