// Swin-L of patches of 4 and windows of 7 for images of 224x224, as timm's
// swin_large_patch4_window7_224, with the stochastic depth that timm trains it with where nothing
// is said (drop_path_rate 0.1).
#include "runners/train/models/swin.h"

namespace assay::train {

ModelEntry SwinLEntry() {
  static constexpr SwinOptions kOptions = {};
  return {.name = "swin_l",
          .parameters = 196532476,
          .sample_unit = "img",
          .image = {224, 224},
          .least_image = {224, 224},
          .most_image = {224, 224},
          .make = [](const Placement& p) { return MakeSwin(kOptions, p); },
          .forward_flops = [](int64_t, int64_t) { return SwinForwardFlops(kOptions); },
          .train_flops = [](int64_t, int64_t) { return SwinTrainFlops(kOptions); }};
}

}  // namespace assay::train
