#include "runners/train/models/resnet50.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "runners/train/models/layers.h"

namespace assay::train {
namespace {

constexpr int64_t kClasses = 1000;
constexpr int64_t kExpansion = 4;
constexpr std::array<int64_t, 4> kBlocks = {3, 4, 6, 3};
constexpr std::array<int64_t, 4> kWidths = {64, 128, 256, 512};

class Bottleneck {
 public:
  Bottleneck(ParameterSet& tensors, const std::string& name, int64_t in, int64_t width,
             int64_t stride)
      : conv1_(tensors, name + ".conv1", in, width, 1, 1),
        bn1_(tensors, name + ".bn1", width),
        conv2_(tensors, name + ".conv2", width, width, 3, stride),
        bn2_(tensors, name + ".bn2", width),
        conv3_(tensors, name + ".conv3", width, width * kExpansion, 1, 1),
        bn3_(tensors, name + ".bn3", width * kExpansion) {
    if (stride != 1 || in != width * kExpansion) {
      shortcut_conv_.emplace(tensors, name + ".downsample.0", in, width * kExpansion, 1, stride);
      shortcut_bn_.emplace(tensors, name + ".downsample.1", width * kExpansion);
    }
  }

  at::Tensor operator()(const at::Tensor& input) const {
    // A layer a statement: what it read is free before the next one allocates, so that inference walks
    // over few buffers and more of them are still in the cache.
    at::Tensor out = conv1_(input);
    out = bn1_(out);
    at::relu_(out);
    out = conv2_(out);
    out = bn2_(out);
    at::relu_(out);
    out = conv3_(out);
    out = bn3_(out);
    out.add_(shortcut_conv_ ? (*shortcut_bn_)((*shortcut_conv_)(input)) : input);
    return at::relu_(out);
  }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  Conv2d conv3_;
  BatchNorm2d bn3_;
  std::optional<Conv2d> shortcut_conv_;
  std::optional<BatchNorm2d> shortcut_bn_;
};

class ResNet50 final : public Model {
 public:
  explicit ResNet50(const Placement& placement)
      : Model(placement), conv1_(tensors_, "conv1", 3, 64, 7, 2), bn1_(tensors_, "bn1", 64) {
    int64_t in = 64;
    for (size_t stage = 0; stage < kBlocks.size(); ++stage) {
      for (int64_t block = 0; block < kBlocks[stage]; ++block) {
        const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
        blocks_.emplace_back(tensors_, name, in, kWidths[stage], stride);
        in = kWidths[stage] * kExpansion;
      }
    }
    fc_.emplace(tensors_, "fc", in, kClasses);
  }

  at::Tensor Forward(const at::Tensor& images) override {
    at::Tensor x = conv1_(images);
    x = bn1_(x);
    at::relu_(x);
    x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
    for (const Bottleneck& block : blocks_) x = block(x);
    return (*fc_)(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

  int64_t classes() const override { return kClasses; }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  std::vector<Bottleneck> blocks_;
  std::optional<Linear> fc_;
};

// Size after a stride of 2 with the padding of Conv2d.
int64_t Halved(int64_t size) { return (size + 1) / 2; }

}  // namespace

std::unique_ptr<Model> MakeResNet50(const Placement& placement) {
  return std::make_unique<ResNet50>(placement);
}

namespace {

int64_t FirstLayerMacs(int64_t height, int64_t width) {
  return Halved(height) * Halved(width) * 64 * 3 * 7 * 7;
}

}  // namespace

int64_t ResNet50ForwardFlops(int64_t height, int64_t width) {
  int64_t h = Halved(height), w = Halved(width);
  int64_t macs = FirstLayerMacs(height, width);
  h = Halved(h), w = Halved(w);
  int64_t in = 64;
  for (size_t stage = 0; stage < kBlocks.size(); ++stage) {
    const int64_t inner = kWidths[stage], out = inner * kExpansion;
    for (int64_t block = 0; block < kBlocks[stage]; ++block) {
      macs += h * w * in * inner;
      if (stage > 0 && block == 0) h = Halved(h), w = Halved(w);
      macs += h * w * (inner * inner * 9 + inner * out);
      if (block == 0) macs += h * w * in * out;
      in = out;
    }
  }
  return 2 * (macs + in * kClasses);
}

int64_t ResNet50TrainFlops(int64_t height, int64_t width) {
  return 3 * ResNet50ForwardFlops(height, width) - 2 * FirstLayerMacs(height, width);
}

}  // namespace assay::train
