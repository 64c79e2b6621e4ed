#include "runners/train/models/detection/pyramid_backbone.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

namespace assay::train {
namespace {

constexpr int64_t kWidening = 4;
constexpr std::array<int64_t, 4> kStageBlocks = {3, 4, 6, 3};
constexpr std::array<int64_t, 4> kStageWidths = {64, 128, 256, 512};
// Stages that are trained, from this one on; the stem and stage 0 are not.
constexpr size_t kFirstTrained = 1;
// With statistics of nothing the sum of a block's two branches would double in variance sixteen
// times over, which no trained network does; half precision would overflow.
constexpr double kBranchWeight = 0.2;

at::Tensor Conv(const at::Tensor& input, const at::Tensor& weight, int64_t stride = 1) {
  return at::conv2d(input, weight, {}, {stride, stride}, {weight.size(2) / 2, weight.size(3) / 2});
}

at::Tensor ConvWeight(ParameterSet& tensors, const std::string& name, at::IntArrayRef shape,
                      bool trained) {
  return trained ? tensors.ConvWeight(name, shape) : tensors.FrozenConvWeight(name, shape);
}

// Uniform with variance 1 / fan_in: He et al. (2015) for a layer without ReLU, as TorchVision's
// FPN.
at::Tensor PyramidWeight(ParameterSet& tensors, const std::string& name, int64_t in,
                         int64_t kernel) {
  const double fan_in = static_cast<double>(in * kernel * kernel);
  return tensors.Uniform(name, {kPyramidChannels, in, kernel, kernel}, std::sqrt(3.0 / fan_in));
}

}  // namespace

BiasedConv2d::BiasedConv2d(ParameterSet& tensors, const std::string& name, at::Tensor weight)
    : weight_(std::move(weight)), bias_(tensors.Constant(name + ".bias", {weight_.size(0)}, 0.0)) {}

at::Tensor BiasedConv2d::operator()(const at::Tensor& input) const {
  return at::conv2d(input, weight_, bias_, {1, 1}, {weight_.size(2) / 2, weight_.size(3) / 2});
}

FrozenBatchNorm2d::FrozenBatchNorm2d(ParameterSet& tensors, const std::string& name,
                                     int64_t features, double weight)
    : weight_(tensors.Buffer(name + ".weight", {features}, weight)),
      bias_(tensors.Buffer(name + ".bias", {features}, 0.0)),
      running_mean_(tensors.Buffer(name + ".running_mean", {features}, 0.0)),
      running_var_(tensors.Buffer(name + ".running_var", {features}, 1.0)) {}

at::Tensor FrozenBatchNorm2d::operator()(const at::Tensor& input) const {
  // One kernel that keeps half precision; TorchVision's product and sum would widen it to fp32.
  return at::batch_norm(input, weight_, bias_, running_mean_, running_var_, /*training=*/false,
                        /*momentum=*/0.0, /*eps=*/1e-5, /*cudnn_enabled=*/false);
}

class PyramidBackbone::Block {
 public:
  Block(ParameterSet& tensors, const std::string& name, int64_t in, int64_t width, int64_t stride,
        bool trained)
      : conv1_(ConvWeight(tensors, name + ".conv1.weight", {width, in, 1, 1}, trained)),
        bn1_(tensors, name + ".bn1", width, 1.0),
        conv2_(ConvWeight(tensors, name + ".conv2.weight", {width, width, 3, 3}, trained)),
        bn2_(tensors, name + ".bn2", width, 1.0),
        conv3_(
            ConvWeight(tensors, name + ".conv3.weight", {width * kWidening, width, 1, 1}, trained)),
        bn3_(tensors, name + ".bn3", width * kWidening, kBranchWeight),
        stride_(stride) {
    if (stride == 1 && in == width * kWidening) return;
    shortcut_ =
        ConvWeight(tensors, name + ".downsample.0.weight", {width * kWidening, in, 1, 1}, trained);
    shortcut_bn_.emplace(tensors, name + ".downsample.1", width * kWidening, 1.0);
  }

  // A layer a statement: nested, a layer's input would live until the next has its output.
  at::Tensor operator()(const at::Tensor& input) const {
    at::Tensor out = Conv(input, conv1_);
    out = bn1_(out);
    at::relu_(out);
    out = Conv(out, conv2_, stride_);
    out = bn2_(out);
    at::relu_(out);
    out = Conv(out, conv3_);
    out = bn3_(out);
    if (shortcut_bn_) {
      at::Tensor shortcut = Conv(input, shortcut_, stride_);
      shortcut = (*shortcut_bn_)(shortcut);
      out.add_(shortcut);
    } else {
      out.add_(input);
    }
    return at::relu_(out);
  }

 private:
  at::Tensor conv1_;
  FrozenBatchNorm2d bn1_;
  at::Tensor conv2_;
  FrozenBatchNorm2d bn2_;
  at::Tensor conv3_;
  FrozenBatchNorm2d bn3_;
  int64_t stride_;
  at::Tensor shortcut_;
  std::optional<FrozenBatchNorm2d> shortcut_bn_;
};

PyramidBackbone::~PyramidBackbone() = default;

PyramidBackbone::PyramidBackbone(ParameterSet& tensors) {
  const std::string body = "backbone.body.";
  stem_ = tensors.FrozenConvWeight(body + "conv1.weight", {64, 3, 7, 7});
  stem_norm_.emplace(tensors, body + "bn1", 64, 1.0);
  int64_t in = 64;
  for (size_t stage = 0; stage < kStageBlocks.size(); ++stage) {
    for (int64_t block = 0; block < kStageBlocks[stage]; ++block) {
      blocks_.emplace_back(
          tensors, body + "layer" + std::to_string(stage + 1) + "." + std::to_string(block), in,
          kStageWidths[stage], stage > 0 && block == 0 ? 2 : 1, stage >= kFirstTrained);
      in = kStageWidths[stage] * kWidening;
    }
  }
  for (size_t level = 0; level < kStageBlocks.size(); ++level) {
    const std::string place = std::to_string(level) + ".0";
    const std::string inner = "backbone.fpn.inner_blocks." + place;
    const std::string layer = "backbone.fpn.layer_blocks." + place;
    inner_.emplace_back(
        tensors, inner,
        PyramidWeight(tensors, inner + ".weight", kStageWidths[level] * kWidening, 1));
    layer_.emplace_back(tensors, layer,
                        PyramidWeight(tensors, layer + ".weight", kPyramidChannels, 3));
  }
}

std::array<at::Tensor, kFeatureLevels> PyramidBackbone::operator()(const at::Tensor& images) const {
  at::Tensor x = Conv(images, stem_, 2);
  x = (*stem_norm_)(x);
  at::relu_(x);
  x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
  std::array<at::Tensor, 4> stages;
  size_t at_block = 0;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (int64_t i = 0; i < kStageBlocks[stage]; ++i) x = blocks_[at_block++](x);
    stages[stage] = x;
  }
  std::array<at::Tensor, kFeatureLevels> maps;
  at::Tensor inner;
  for (int level = 3; level >= 0; --level) {
    at::Tensor lateral = inner_[level](stages[level]);
    if (inner.defined()) {
      lateral = lateral + at::upsample_nearest2d(inner, {lateral.size(2), lateral.size(3)});
    }
    inner = lateral;
    maps[level] = layer_[level](inner);
  }
  maps[4] = at::max_pool2d(maps[3], {1, 1}, {2, 2});
  return maps;
}

}  // namespace assay::train
