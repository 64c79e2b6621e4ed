// Layers that models are made of. Each registers its tensors under the names of PyTorch's
// state_dict. Thread rule and owner: those of the model.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_LAYERS_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_LAYERS_H_

#include <optional>
#include <string>

#include "runners/train/models/model.h"

namespace assay::train {

// Convolution with a square kernel. Without `padding`, that which keeps the size at stride 1. A
// bias begins at 0.
class Conv2d {
 public:
  Conv2d(ParameterSet& tensors, const std::string& name, int64_t in, int64_t out, int64_t kernel,
         int64_t stride, int64_t groups = 1, bool bias = false,
         std::optional<int64_t> padding = std::nullopt);
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  at::Tensor weight_;
  std::optional<at::Tensor> bias_;
  int64_t stride_, padding_, groups_;
};

// Batch statistics in training (momentum 0.1), running ones in inference; eps 1e-5.
class BatchNorm2d {
 public:
  BatchNorm2d(ParameterSet& tensors, const std::string& name, int64_t features);
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  at::Tensor weight_, bias_, running_mean_, running_var_;
  bool train_;
};

class Linear {
 public:
  Linear(ParameterSet& tensors, const std::string& name, int64_t in, int64_t out);
  // Weights drawn normal with this standard deviation; a bias begins at 0.
  Linear(ParameterSet& tensors, const std::string& name, int64_t in, int64_t out, double deviation,
         bool bias = true);
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  at::Tensor weight_;
  std::optional<at::Tensor> bias_;
};

// Over the last dimension; eps 1e-5.
class LayerNorm {
 public:
  LayerNorm(ParameterSet& tensors, const std::string& name, int64_t features);
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  at::Tensor weight_, bias_;
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_LAYERS_H_
