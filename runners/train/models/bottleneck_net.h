// BottleneckNet: residual networks of bottleneck blocks, of which ResNet, ResNeXt and SE-ResNeXt
// are settings: He et al., "Deep Residual Learning for Image Recognition" (2015); Xie et al.,
// "Aggregated Residual Transformations" (2016); Hu et al., "Squeeze-and-Excitation Networks"
// (2017). Tensors have the names of TorchVision's and timm's state_dict. Thread rule and owner:
// those of Model. 1000 classes.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_BOTTLENECK_NET_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_BOTTLENECK_NET_H_

#include <array>
#include <cstdint>
#include <memory>

#include "runners/train/models/registry.h"

namespace assay::train {

struct BottleneckOptions {
  std::array<int64_t, 4> blocks = {3, 4, 6, 3};  // of each stage
  int64_t groups = 1;                            // of the 3x3 convolution
  int64_t group_width = 64;                      // channels of a group in the first stage
  // Where a block halves the image: in its first 1x1 convolution (v1) or its 3x3 one (v1.5).
  bool stride_in_first = false;
  bool squeeze_excite = false;  // with a sixteenth of the channels between
};

std::unique_ptr<Model> MakeBottleneckNet(const BottleneckOptions& options,
                                         const Placement& placement);

// Of one image: two for each multiply-add of the convolutions and of the last layer; what is
// element-wise is left out.
int64_t BottleneckForwardFlops(const BottleneckOptions& options, int64_t height, int64_t width);
int64_t BottleneckTrainFlops(const BottleneckOptions& options, int64_t height, int64_t width);

// The entry of a model that is these options. `kOptions` must outlive the program.
template <const BottleneckOptions& kOptions>
ModelEntry BottleneckEntry(const char* name, int64_t parameters) {
  return {
      .name = name,
      .parameters = parameters,
      .sample_unit = "img",
      .image = {224, 224},
      .least_image = {32, 32},
      .make = [](const Placement& p) { return MakeBottleneckNet(kOptions, p); },
      .forward_flops = [](int64_t h, int64_t w) { return BottleneckForwardFlops(kOptions, h, w); },
      .train_flops = [](int64_t h, int64_t w) { return BottleneckTrainFlops(kOptions, h, w); }};
}

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_BOTTLENECK_NET_H_
