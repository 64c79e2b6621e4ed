// Swin: windows of self-attention over a pyramid of patches, every other block with its windows
// shifted: Liu et al., "Swin Transformer" (2021), as timm's SwinTransformer, whose state_dict names
// the tensors. Stochastic depth in training as there (Huang et al., 2016): a residual branch is
// left out for a sample with a probability that grows from 0 in the first block to `drop_path` in
// the last, drawn on the device by the default generator. 1000 classes. Thread rule and owner:
// those of Model.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_SWIN_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_SWIN_H_

#include <array>
#include <cstdint>
#include <memory>

#include "runners/train/models/registry.h"

namespace assay::train {

struct SwinOptions {
  int64_t image = 224;  // height and width: fixed, since windows and masks are of this size
  int64_t patch = 4;
  int64_t window = 7;   // must divide the side of every stage
  int64_t width = 192;  // channels of the first stage; each later one has twice as many
  std::array<int64_t, 4> blocks = {2, 2, 18, 2};
  std::array<int64_t, 4> heads = {6, 12, 24, 48};
  double drop_path = 0.1;
};

std::unique_ptr<Model> MakeSwin(const SwinOptions& options, const Placement& placement);

// Of one image: two for each multiply-add of convolution, linear layers and attention.
int64_t SwinForwardFlops(const SwinOptions& options);
// The same for the gradients of weights and inputs each, but for that of the image.
int64_t SwinTrainFlops(const SwinOptions& options);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_SWIN_H_
