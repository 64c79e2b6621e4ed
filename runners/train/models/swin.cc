#include "runners/train/models/swin.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "runners/train/models/layers.h"

namespace assay::train {
namespace {

constexpr int64_t kSwinClasses = 1000;
constexpr int64_t kSwinMlpRatio = 4;
constexpr double kSwinDeviation = 0.02;

// For each pair of places in a window, the row of the table of biases for their distance:
// {window^4}, int64.
at::Tensor RelativePositions(int64_t window) {
  const at::Tensor place = at::arange(window * window, at::kLong);
  const at::Tensor row = place.floor_divide(window), column = place.remainder(window);
  const at::Tensor rows = row.unsqueeze(1) - row.unsqueeze(0) + (window - 1);
  const at::Tensor columns = column.unsqueeze(1) - column.unsqueeze(0) + (window - 1);
  return (rows * (2 * window - 1) + columns).flatten();
}

// {1, windows, 1, window^2, window^2}: 0, or -100 between places that only the cyclic shift made
// neighbours.
at::Tensor ShiftMask(int64_t side, int64_t window, int64_t shift) {
  // Which of the three bands a row or column belongs to.
  const at::Tensor place = at::arange(side, at::kLong);
  const at::Tensor band = place.ge(side - window) + place.ge(side - shift).to(at::kLong);
  const at::Tensor region = band.unsqueeze(1) * 3 + band.unsqueeze(0);
  const int64_t count = side / window;
  const at::Tensor of_window = region.view({count, window, count, window})
                                   .permute({0, 2, 1, 3})
                                   .reshape({1, count * count, 1, window * window});
  const at::Tensor apart = of_window.unsqueeze(-1).ne(of_window.unsqueeze(-2));
  return apart.to(at::kFloat).mul(-100.0);
}

// {N, side, side, C} to {N * windows, window^2, C}, and back.
at::Tensor ToWindows(const at::Tensor& x, int64_t window) {
  const int64_t count = x.size(1) / window, channels = x.size(3);
  return x.view({x.size(0), count, window, count, window, channels})
      .permute({0, 1, 3, 2, 4, 5})
      .reshape({-1, window * window, channels});
}

at::Tensor FromWindows(const at::Tensor& windows, int64_t side, int64_t window) {
  const int64_t count = side / window, channels = windows.size(2);
  return windows.view({-1, count, count, window, window, channels})
      .permute({0, 1, 3, 2, 4, 5})
      .reshape({-1, side, side, channels});
}

class WindowAttention {
 public:
  // `side`: of the stage, in patches.
  WindowAttention(ParameterSet& tensors, const std::string& name, int64_t width, int64_t heads,
                  int64_t side, int64_t window, int64_t shift)
      : heads_(heads),
        window_(window),
        shift_(shift),
        bias_table_(tensors.Normal(name + ".relative_position_bias_table",
                                   {(2 * window - 1) * (2 * window - 1), heads}, kSwinDeviation)),
        positions_(RelativePositions(window).to(tensors.placement().device)),
        qkv_(tensors, name + ".qkv", width, 3 * width, kSwinDeviation),
        proj_(tensors, name + ".proj", width, width, kSwinDeviation) {
    if (shift > 0) mask_ = ShiftMask(side, window, shift).to(tensors.placement().device);
  }

  // {N, side, side, C}, both.
  at::Tensor operator()(const at::Tensor& input) const {
    const int64_t side = input.size(1);
    at::Tensor x = input;
    if (shift_ > 0) x = at::roll(x, {-shift_, -shift_}, {1, 2});
    x = ToWindows(x, window_);
    x = Attend(x);
    x = FromWindows(x, side, window_);
    if (shift_ > 0) x = at::roll(x, {shift_, shift_}, {1, 2});
    return x;
  }

 private:
  // {1, 1, heads, window^2, window^2}, or with a mask one for each window of an image. Added in one
  // pass over the scores, where timm takes one for the bias and one for the mask.
  at::Tensor Bias() const {
    const int64_t area = window_ * window_;
    at::Tensor bias = bias_table_.index_select(0, positions_).view({area, area, heads_});
    bias = bias.permute({2, 0, 1}).contiguous().view({1, 1, heads_, area, area});
    return mask_.defined() ? bias.add(mask_) : bias;
  }

  at::Tensor Attend(const at::Tensor& windows) const {
    const int64_t count = windows.size(0), area = windows.size(1), channels = windows.size(2);
    at::Tensor x = qkv_(windows);
    x = x.view({count, area, 3, heads_, channels / heads_}).permute({2, 0, 3, 1, 4});
    const at::Tensor q = x.select(0, 0).mul(1 / std::sqrt(channels / heads_));
    at::Tensor scores = at::matmul(q, x.select(0, 1).transpose(-2, -1));
    const at::Tensor bias = Bias();
    scores = scores.view({-1, bias.size(1), heads_, area, area}).add(bias);
    scores = at::softmax(scores, -1).view({count, heads_, area, area});
    x = at::matmul(scores, x.select(0, 2));
    x = x.transpose(1, 2).reshape({count, area, channels});
    return proj_(x);
  }

  int64_t heads_, window_, shift_;
  at::Tensor bias_table_, positions_, mask_;
  Linear qkv_, proj_;
};

class SwinBlock {
 public:
  SwinBlock(ParameterSet& tensors, const std::string& name, int64_t width, int64_t heads,
            int64_t side, int64_t window, int64_t shift, double drop_path)
      : norm1_(tensors, name + ".norm1", width),
        attention_(tensors, name + ".attn", width, heads, side, window, shift),
        norm2_(tensors, name + ".norm2", width),
        fc1_(tensors, name + ".mlp.fc1", width, kSwinMlpRatio * width, kSwinDeviation),
        fc2_(tensors, name + ".mlp.fc2", kSwinMlpRatio * width, width, kSwinDeviation),
        kept_(tensors.placement().train ? 1 - drop_path : 1) {}

  at::Tensor operator()(const at::Tensor& input) const {
    at::Tensor branch = norm1_(input);
    branch = attention_(branch);
    branch = DropPath(branch);
    const at::Tensor middle = input.add(branch);
    branch = norm2_(middle);
    branch = branch.flatten(1, 2);
    branch = fc1_(branch);
    branch = at::gelu(branch);
    branch = fc2_(branch);
    branch = branch.view_as(middle);
    branch = DropPath(branch);
    return middle.add(branch);
  }

 private:
  // Its generator counts on the device, so that a recording draws anew in every replay.
  at::Tensor DropPath(const at::Tensor& branch) const {
    if (kept_ == 1) return branch;
    at::Tensor kept = at::empty({branch.size(0), 1, 1, 1}, branch.options());
    kept.bernoulli_(kept_);
    kept.div_(kept_);
    return branch.mul(kept);
  }

  LayerNorm norm1_;
  WindowAttention attention_;
  LayerNorm norm2_;
  Linear fc1_, fc2_;
  double kept_;
};

// Each two by two patches become one, of twice the channels.
class PatchMerging {
 public:
  PatchMerging(ParameterSet& tensors, const std::string& name, int64_t width)
      : norm_(tensors, name + ".norm", 4 * width),
        reduction_(tensors, name + ".reduction", 4 * width, 2 * width, kSwinDeviation,
                   /*bias=*/false) {}

  at::Tensor operator()(const at::Tensor& input) const {
    const int64_t half = input.size(1) / 2, channels = input.size(3);
    at::Tensor x = input.reshape({-1, half, 2, half, 2, channels})
                       .permute({0, 1, 3, 4, 2, 5})
                       .reshape({-1, half, half, 4 * channels});
    x = norm_(x);
    return reduction_(x);
  }

 private:
  LayerNorm norm_;
  Linear reduction_;
};

struct SwinStage {
  std::optional<PatchMerging> merging;
  std::vector<SwinBlock> blocks;
};

class Swin final : public Model {
 public:
  Swin(const SwinOptions& options, const Placement& placement)
      : Model(placement),
        patches_(tensors_, "patch_embed.proj", 3, options.width, options.patch, options.patch,
                 /*groups=*/1, /*bias=*/true, /*padding=*/0),
        patch_norm_(tensors_, "patch_embed.norm", options.width) {
    int64_t side = options.image / options.patch, width = options.width, done = 0;
    int64_t all = 0;
    for (const int64_t blocks : options.blocks) all += blocks;
    for (size_t i = 0; i < options.blocks.size(); ++i) {
      const std::string name = "layers." + std::to_string(i);
      SwinStage& stage = stages_.emplace_back();
      if (i > 0) {
        stage.merging.emplace(tensors_, name + ".downsample", width);
        side /= 2;
        width *= 2;
      }
      // One window that is all of the stage has nowhere to shift to.
      const int64_t shift = side > options.window ? options.window / 2 : 0;
      for (int64_t j = 0; j < options.blocks[i]; ++j, ++done) {
        stage.blocks.emplace_back(
            tensors_, name + ".blocks." + std::to_string(j), width, options.heads[i], side,
            options.window, j % 2 == 0 ? 0 : shift,
            options.drop_path * static_cast<double>(done) / static_cast<double>(all - 1));
      }
    }
    norm_.emplace(tensors_, "norm", width);
    head_.emplace(tensors_, "head.fc", width, kSwinClasses, kSwinDeviation);
  }

  at::Tensor Forward(const at::Tensor& images) override {
    at::Tensor x = patches_(images);
    x = x.permute({0, 2, 3, 1});
    x = patch_norm_(x);
    for (const SwinStage& stage : stages_) {
      if (stage.merging) x = (*stage.merging)(x);
      for (const SwinBlock& block : stage.blocks) x = block(x);
    }
    x = (*norm_)(x);
    x = x.mean({1, 2});
    return (*head_)(x);
  }

  int64_t classes() const override { return kSwinClasses; }

 private:
  Conv2d patches_;
  LayerNorm patch_norm_;
  std::vector<SwinStage> stages_;
  std::optional<LayerNorm> norm_;
  std::optional<Linear> head_;
};

int64_t PatchMacs(const SwinOptions& options) {
  return options.image * options.image * 3 * options.width;
}

}  // namespace

std::unique_ptr<Model> MakeSwin(const SwinOptions& options, const Placement& placement) {
  return std::make_unique<Swin>(options, placement);
}

int64_t SwinForwardFlops(const SwinOptions& options) {
  int64_t macs = PatchMacs(options);
  int64_t side = options.image / options.patch, width = options.width;
  for (size_t i = 0; i < options.blocks.size(); ++i) {
    if (i > 0) {
      side /= 2;
      width *= 2;
      macs += side * side * 2 * width * width;  // 4 * (width / 2) channels to width
    }
    const int64_t places = side * side, area = options.window * options.window;
    const int64_t linear = places * width * width * (3 + 1 + 2 * kSwinMlpRatio);
    const int64_t attention = 2 * places * area * width;
    macs += options.blocks[i] * (linear + attention);
  }
  return 2 * (macs + width * kSwinClasses);
}

int64_t SwinTrainFlops(const SwinOptions& options) {
  return 3 * SwinForwardFlops(options) - 2 * PatchMacs(options);
}

}  // namespace assay::train
