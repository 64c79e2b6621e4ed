// ResNet-50 as He et al. (2015) print it: the stride of a down-sampling block is in its first 1x1
// convolution.
#include "runners/train/models/bottleneck_net.h"

namespace assay::train {

ModelEntry ResNet50V1Entry() {
  static constexpr BottleneckOptions kOptions = {.stride_in_first = true};
  return BottleneckEntry<kOptions>("resnet50_v1", 25557032);
}

}  // namespace assay::train
