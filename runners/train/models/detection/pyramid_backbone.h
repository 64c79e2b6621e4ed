// ResNet-50 with a feature pyramid: Lin et al., "Feature Pyramid Networks" (2017), as TorchVision's
// resnet_fpn_backbone with its defaults for training from given weights: batch normalisation is
// frozen everywhere, the stem and the first stage are not trained. Tensors have TorchVision's
// names.
//
// Thread rule and owner: those of the model.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_PYRAMID_BACKBONE_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_PYRAMID_BACKBONE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runners/train/models/model.h"

namespace assay::train {

inline constexpr int kFeatureLevels = 5;  // strides 4, 8, 16, 32, 64
inline constexpr int64_t kPyramidChannels = 256;

// A convolution with bias, padding that keeps the size.
class BiasedConv2d {
 public:
  BiasedConv2d(ParameterSet& tensors, const std::string& name, at::Tensor weight);
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  at::Tensor weight_, bias_;
};

// Batch normalisation by fixed statistics, weight and bias (eps 1e-5): buffers, none of them
// trained.
class FrozenBatchNorm2d {
 public:
  FrozenBatchNorm2d(ParameterSet& tensors, const std::string& name, int64_t features,
                    double weight);
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  at::Tensor weight_, bias_, running_mean_, running_var_;
};

class PyramidBackbone {
 public:
  explicit PyramidBackbone(ParameterSet& tensors);
  ~PyramidBackbone();
  // Images {N, 3, H, W} to maps of 256 channels, the finest first.
  std::array<at::Tensor, kFeatureLevels> operator()(const at::Tensor& images) const;

 private:
  class Block;
  at::Tensor stem_;
  std::optional<FrozenBatchNorm2d> stem_norm_;
  std::vector<Block> blocks_;
  std::vector<BiasedConv2d> inner_, layer_;
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_PYRAMID_BACKBONE_H_
