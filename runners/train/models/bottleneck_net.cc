#include "runners/train/models/bottleneck_net.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>

#include <optional>
#include <string>
#include <vector>

#include "runners/train/models/layers.h"

namespace assay::train {
namespace {

constexpr int64_t kImageNetClasses = 1000;
constexpr int64_t kExpansion = 4;
constexpr int64_t kReduction = 16;

// Channels of the 3x3 convolutions of a stage, and of what its blocks give.
int64_t InnerWidth(const BottleneckOptions& options, size_t stage) {
  return options.groups * (options.group_width << stage);
}
int64_t OuterWidth(size_t stage) { return (int64_t{64} << stage) * kExpansion; }

// One layer a statement, in all that follows: nested, what a layer was given would live until the
// outer one has its memory, and inference would walk over one buffer more (0.1 to 0.3 % on an
// H200).
class SqueezeExcite {
 public:
  SqueezeExcite(ParameterSet& tensors, const std::string& name, int64_t channels)
      : fc1_(tensors, name + ".fc1", channels, channels / kReduction, 1, 1, 1, /*bias=*/true),
        fc2_(tensors, name + ".fc2", channels / kReduction, channels, 1, 1, 1, /*bias=*/true) {}

  at::Tensor operator()(const at::Tensor& input) const {
    at::Tensor gate = input.mean({2, 3}, /*keepdim=*/true);
    gate = fc1_(gate);
    at::relu_(gate);
    gate = fc2_(gate);
    gate = gate.sigmoid();
    return input.mul(gate);
  }

 private:
  Conv2d fc1_, fc2_;
};

class Bottleneck {
 public:
  Bottleneck(ParameterSet& tensors, const std::string& name, const BottleneckOptions& options,
             int64_t in, int64_t inner, int64_t out, int64_t stride)
      : conv1_(tensors, name + ".conv1", in, inner, 1, options.stride_in_first ? stride : 1),
        bn1_(tensors, name + ".bn1", inner),
        conv2_(tensors, name + ".conv2", inner, inner, 3, options.stride_in_first ? 1 : stride,
               options.groups),
        bn2_(tensors, name + ".bn2", inner),
        conv3_(tensors, name + ".conv3", inner, out, 1, 1),
        bn3_(tensors, name + ".bn3", out) {
    if (options.squeeze_excite) squeeze_.emplace(tensors, name + ".se", out);
    if (stride != 1 || in != out) {
      shortcut_conv_.emplace(tensors, name + ".downsample.0", in, out, 1, stride);
      shortcut_bn_.emplace(tensors, name + ".downsample.1", out);
    }
  }

  at::Tensor operator()(const at::Tensor& input) const {
    at::Tensor out = conv1_(input);
    out = bn1_(out);
    at::relu_(out);
    out = conv2_(out);
    out = bn2_(out);
    at::relu_(out);
    out = conv3_(out);
    out = bn3_(out);
    if (squeeze_) out = (*squeeze_)(out);
    if (shortcut_conv_) {
      at::Tensor shortcut = (*shortcut_conv_)(input);
      shortcut = (*shortcut_bn_)(shortcut);
      out.add_(shortcut);
    } else {
      out.add_(input);
    }
    return at::relu_(out);
  }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  Conv2d conv3_;
  BatchNorm2d bn3_;
  std::optional<SqueezeExcite> squeeze_;
  std::optional<Conv2d> shortcut_conv_;
  std::optional<BatchNorm2d> shortcut_bn_;
};

class BottleneckNet final : public Model {
 public:
  BottleneckNet(const BottleneckOptions& options, const Placement& placement)
      : Model(placement), conv1_(tensors_, "conv1", 3, 64, 7, 2), bn1_(tensors_, "bn1", 64) {
    int64_t in = 64;
    for (size_t stage = 0; stage < options.blocks.size(); ++stage) {
      for (int64_t block = 0; block < options.blocks[stage]; ++block) {
        const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
        blocks_.emplace_back(tensors_, name, options, in, InnerWidth(options, stage),
                             OuterWidth(stage), stride);
        in = OuterWidth(stage);
      }
    }
    fc_.emplace(tensors_, "fc", in, kImageNetClasses);
  }

  at::Tensor Forward(const at::Tensor& images) override {
    at::Tensor x = conv1_(images);
    x = bn1_(x);
    at::relu_(x);
    x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
    for (const Bottleneck& block : blocks_) x = block(x);
    x = at::adaptive_avg_pool2d(x, {1, 1});
    return (*fc_)(x.flatten(1));
  }

  int64_t classes() const override { return kImageNetClasses; }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  std::vector<Bottleneck> blocks_;
  std::optional<Linear> fc_;
};

// Size after a stride of 2 with the padding of Conv2d.
int64_t Halved(int64_t size) { return (size + 1) / 2; }

int64_t FirstLayerMacs(int64_t height, int64_t width) {
  return Halved(height) * Halved(width) * 64 * 3 * 7 * 7;
}

}  // namespace

std::unique_ptr<Model> MakeBottleneckNet(const BottleneckOptions& options,
                                         const Placement& placement) {
  return std::make_unique<BottleneckNet>(options, placement);
}

int64_t BottleneckForwardFlops(const BottleneckOptions& options, int64_t height, int64_t width) {
  int64_t h = Halved(Halved(height)), w = Halved(Halved(width));
  int64_t macs = FirstLayerMacs(height, width);
  int64_t in = 64;
  for (size_t stage = 0; stage < options.blocks.size(); ++stage) {
    const int64_t inner = InnerWidth(options, stage), out = OuterWidth(stage);
    for (int64_t block = 0; block < options.blocks[stage]; ++block) {
      const int64_t before = h * w;
      if (stage > 0 && block == 0) h = Halved(h), w = Halved(w);
      macs += (options.stride_in_first ? h * w : before) * in * inner;
      macs += h * w * (inner * inner / options.groups * 9 + inner * out);
      if (options.squeeze_excite) macs += 2 * out * (out / kReduction);
      if (block == 0) macs += h * w * in * out;
      in = out;
    }
  }
  return 2 * (macs + in * kImageNetClasses);
}

int64_t BottleneckTrainFlops(const BottleneckOptions& options, int64_t height, int64_t width) {
  return 3 * BottleneckForwardFlops(options, height, width) - 2 * FirstLayerMacs(height, width);
}

}  // namespace assay::train
