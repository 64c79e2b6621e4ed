// ResNeXt-101 of 32 groups of width 4 with a squeeze-and-excitation in every block, as timm's
// seresnext101_32x4d.
#include "runners/train/models/bottleneck_net.h"

namespace assay::train {

ModelEntry SeResNext101Entry() {
  static constexpr BottleneckOptions kOptions = {
      .blocks = {3, 4, 23, 3}, .groups = 32, .group_width = 4, .squeeze_excite = true};
  return BottleneckEntry<kOptions>("se_resnext101_32x4d", 48955416);
}

}  // namespace assay::train
