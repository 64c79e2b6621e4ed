// ResNet-50 v1.5: the stride of a down-sampling block is in its 3x3 convolution, as in
// TorchVision's resnet50.
#include "runners/train/models/bottleneck_net.h"

namespace assay::train {

ModelEntry ResNet50Entry() {
  static constexpr BottleneckOptions kOptions = {};
  return BottleneckEntry<kOptions>("resnet50", 25557032);
}

}  // namespace assay::train
