// The registry's models with fewer or narrower layers, through the same code: what tests on the CPU
// train, and compare with the same settings of the references (reference_test.py).
#ifndef ASSAY_TESTS_UNIT_RUNNERS_TRAIN_SHALLOW_MODELS_H_
#define ASSAY_TESTS_UNIT_RUNNERS_TRAIN_SHALLOW_MODELS_H_

#include <vector>

#include "runners/train/models/bottleneck_net.h"

namespace assay::train {

inline constexpr BottleneckOptions kShallowV1 = {.blocks = {1, 1, 2, 1}, .stride_in_first = true};
inline constexpr BottleneckOptions kShallowResNext = {
    .blocks = {1, 1, 2, 1}, .groups = 32, .group_width = 4};
inline constexpr BottleneckOptions kShallowSe = {
    .blocks = {1, 1, 2, 1}, .groups = 32, .group_width = 4, .squeeze_excite = true};

inline std::vector<ModelEntry> ShallowModels() {
  return {BottleneckEntry<kShallowV1>("shallow_resnet_v1", 0),
          BottleneckEntry<kShallowResNext>("shallow_resnext", 0),
          BottleneckEntry<kShallowSe>("shallow_se_resnext", 0)};
}

// For tests that train, still smaller: of residual networks the first two stages alone, which have
// a twentieth of the weights.
inline constexpr BottleneckOptions kTinyV1 = {.blocks = {1, 2, 0, 0}, .stride_in_first = true};
inline constexpr BottleneckOptions kTinySe = {
    .blocks = {1, 2, 0, 0}, .groups = 32, .group_width = 4, .squeeze_excite = true};

inline std::vector<ModelEntry> TinyModels() {
  return {BottleneckEntry<kTinyV1>("tiny_resnet_v1", 0),
          BottleneckEntry<kTinySe>("tiny_se_resnext", 0)};
}

inline ImageSize SmallImage(const ModelEntry& entry) {
  return entry.image.height == 224 ? ImageSize{32, 32} : entry.image;
}

}  // namespace assay::train

#endif  // ASSAY_TESTS_UNIT_RUNNERS_TRAIN_SHALLOW_MODELS_H_
