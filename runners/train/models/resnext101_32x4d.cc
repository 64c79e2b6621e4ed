// ResNeXt-101 of 32 groups of width 4, as timm's resnext101_32x4d.
#include "runners/train/models/bottleneck_net.h"

namespace assay::train {

ModelEntry ResNext101Entry() {
  static constexpr BottleneckOptions kOptions = {
      .blocks = {3, 4, 23, 3}, .groups = 32, .group_width = 4};
  return BottleneckEntry<kOptions>("resnext101_32x4d", 44177704);
}

}  // namespace assay::train
