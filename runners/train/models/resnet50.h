// ResNet-50 v1.5: He et al., "Deep Residual Learning for Image Recognition" (2015), with the stride
// of a down-sampling block in its 3x3 convolution, as TorchVision's resnet50.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_RESNET50_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_RESNET50_H_

#include <cstdint>
#include <memory>

#include "runners/train/models/model.h"

namespace assay::train {

inline constexpr int64_t kResNet50Parameters = 25557032;

std::unique_ptr<Model> MakeResNet50(const Placement& placement);

// Floating-point operations of one forward pass of one image: two for each multiply-add of the
// convolutions and of the last layer; what is element-wise is left out.
int64_t ResNet50ForwardFlops(int64_t height, int64_t width);
int64_t ResNet50TrainFlops(int64_t height, int64_t width);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_RESNET50_H_
