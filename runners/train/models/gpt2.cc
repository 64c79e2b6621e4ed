#include "runners/train/models/gpt2.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "runners/train/models/layers.h"

namespace assay::train {
namespace {

constexpr int64_t kGpt2MlpRatio = 4;
constexpr double kGpt2Deviation = 0.02;

// A linear layer whose weight is {in, out}, as GPT-2's own code keeps it.
class TransposedLinear {
 public:
  TransposedLinear(ParameterSet& tensors, const std::string& name, int64_t in, int64_t out,
                   double deviation)
      : weight_(tensors.Normal(name + ".weight", {in, out}, deviation)),
        bias_(tensors.Constant(name + ".bias", {out}, 0.0)) {}

  // {N, T, in} to {N, T, out}.
  at::Tensor operator()(const at::Tensor& input) const {
    const at::Tensor rows = at::addmm(bias_, input.view({-1, input.size(-1)}), weight_);
    return rows.view({input.size(0), input.size(1), -1});
  }

 private:
  at::Tensor weight_, bias_;
};

class Gpt2Block {
 public:
  Gpt2Block(ParameterSet& tensors, const std::string& name, const Gpt2Options& options)
      : heads_(options.heads),
        norm1_(tensors, name + ".ln_1", options.width),
        qkv_(tensors, name + ".attn.c_attn", options.width, 3 * options.width, kGpt2Deviation),
        proj_(tensors, name + ".attn.c_proj", options.width, options.width, OfResidual(options)),
        norm2_(tensors, name + ".ln_2", options.width),
        fc_(tensors, name + ".mlp.c_fc", options.width, kGpt2MlpRatio * options.width,
            kGpt2Deviation),
        mlp_proj_(tensors, name + ".mlp.c_proj", kGpt2MlpRatio * options.width, options.width,
                  OfResidual(options)) {}

  at::Tensor operator()(const at::Tensor& input) const {
    at::Tensor branch = norm1_(input);
    branch = Attend(branch);
    const at::Tensor middle = input.add(branch);
    branch = norm2_(middle);
    branch = fc_(branch);
    branch = at::gelu(branch, "tanh");
    branch = mlp_proj_(branch);
    return middle.add(branch);
  }

 private:
  // Each block adds two branches to the residual stream.
  static double OfResidual(const Gpt2Options& options) {
    return kGpt2Deviation / std::sqrt(2.0 * static_cast<double>(options.blocks));
  }

  at::Tensor Attend(const at::Tensor& input) const {
    const int64_t n = input.size(0), tokens = input.size(1), width = input.size(2);
    at::Tensor x = qkv_(input);
    x = x.view({n, tokens, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4});
    x = at::scaled_dot_product_attention(x.select(0, 0), x.select(0, 1), x.select(0, 2),
                                         /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true);
    x = x.transpose(1, 2).reshape({n, tokens, width});
    return proj_(x);
  }

  int64_t heads_;
  LayerNorm norm1_;
  TransposedLinear qkv_, proj_;
  LayerNorm norm2_;
  TransposedLinear fc_, mlp_proj_;
};

class Gpt2 final : public Model {
 public:
  Gpt2(const Gpt2Options& options, const Placement& placement)
      : Model(placement),
        tokens_(tensors_.Normal("transformer.wte.weight", {options.vocabulary, options.width},
                                kGpt2Deviation)),
        places_(tensors_.Normal("transformer.wpe.weight", {options.tokens, options.width},
                                kGpt2Deviation)) {
    for (int64_t i = 0; i < options.blocks; ++i) {
      blocks_.emplace_back(tensors_, "transformer.h." + std::to_string(i), options);
    }
    norm_.emplace(tensors_, "transformer.ln_f", options.width);
  }

  at::Tensor Forward(const at::Tensor& tokens) override {
    at::Tensor x = at::embedding(tokens_, tokens);
    // The places are 0, 1, ...: a look-up of them is a view.
    x = x.add(places_.narrow(0, 0, tokens.size(1)));
    for (const Gpt2Block& block : blocks_) x = block(x);
    x = (*norm_)(x);
    return at::linear(x, tokens_);
  }

  int64_t classes() const override { return tokens_.size(0); }

 private:
  at::Tensor tokens_, places_;
  std::vector<Gpt2Block> blocks_;
  std::optional<LayerNorm> norm_;
};

}  // namespace

std::unique_ptr<Model> MakeGpt2(const Gpt2Options& options, const Placement& placement) {
  return std::make_unique<Gpt2>(options, placement);
}

int64_t Gpt2ForwardFlops(const Gpt2Options& options, int64_t tokens) {
  const int64_t width = options.width;
  const int64_t linear = tokens * width * width * (3 + 1 + 2 * kGpt2MlpRatio);
  const int64_t attention = 2 * tokens * tokens * width;
  return 2 * (options.blocks * (linear + attention) + tokens * width * options.vocabulary);
}

}  // namespace assay::train
