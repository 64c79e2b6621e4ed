// Layers that models are made of. Each registers its tensors under the names of TorchVision's
// state_dict. Thread rule and owner: those of the model.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_LAYERS_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_LAYERS_H_

#include <string>

#include "runners/train/models/model.h"

namespace assay::train {

// Convolution without bias, square kernel, padding that keeps the size at stride 1.
class Conv2d {
 public:
  Conv2d(ParameterSet& tensors, const std::string& name, int64_t in, int64_t out, int64_t kernel,
         int64_t stride, int64_t groups = 1);
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  at::Tensor weight_;
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
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  at::Tensor weight_, bias_;
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_LAYERS_H_
