// The registry's models with fewer or narrower layers, through the same code: what tests on the CPU
// train, and compare with the same settings of the references (reference_test.py).
#ifndef ASSAY_TESTS_UNIT_RUNNERS_TRAIN_SHALLOW_MODELS_H_
#define ASSAY_TESTS_UNIT_RUNNERS_TRAIN_SHALLOW_MODELS_H_

#include <vector>

#include "runners/train/models/bottleneck_net.h"
#include "runners/train/models/gpt2.h"
#include "runners/train/models/swin.h"

namespace assay::train {

inline constexpr BottleneckOptions kShallowV1 = {.blocks = {1, 1, 2, 1}, .stride_in_first = true};
inline constexpr BottleneckOptions kShallowResNext = {
    .blocks = {1, 1, 2, 1}, .groups = 32, .group_width = 4};
inline constexpr BottleneckOptions kShallowSe = {
    .blocks = {1, 1, 2, 1}, .groups = 32, .group_width = 4, .squeeze_excite = true};
// Half of the branches of the last block are left out: at 0.1 two images would hardly lose one.
inline constexpr SwinOptions kShallowSwin = {.image = 64,
                                             .window = 2,
                                             .width = 32,
                                             .blocks = {2, 2, 2, 1},
                                             .heads = {1, 2, 4, 8},
                                             .drop_path = 0.5};
inline constexpr Gpt2Options kShallowGpt2 = {
    .vocabulary = 512, .tokens = 64, .width = 64, .blocks = 3, .heads = 4};

inline ModelEntry ShallowSwinEntry() {
  return {.name = "shallow_swin",
          .sample_unit = "img",
          .image = {kShallowSwin.image, kShallowSwin.image},
          .make = [](const Placement& p) { return MakeSwin(kShallowSwin, p); },
          .forward_flops = [](int64_t, int64_t) { return SwinForwardFlops(kShallowSwin); },
          .train_flops = [](int64_t, int64_t) { return SwinTrainFlops(kShallowSwin); }};
}

inline ModelEntry ShallowGpt2Entry() {
  return {.name = "shallow_gpt2",
          .sample_unit = "sequences",
          .input = InputKind::kTokens,
          .image = {1, kShallowGpt2.tokens},
          .most_image = {1, kShallowGpt2.tokens},
          .make = [](const Placement& p) { return MakeGpt2(kShallowGpt2, p); },
          .forward_flops = [](int64_t, int64_t t) { return Gpt2ForwardFlops(kShallowGpt2, t); },
          .train_flops = [](int64_t, int64_t t) { return 3 * Gpt2ForwardFlops(kShallowGpt2, t); }};
}

inline std::vector<ModelEntry> ShallowModels() {
  return {BottleneckEntry<kShallowV1>("shallow_resnet_v1", 0),
          BottleneckEntry<kShallowResNext>("shallow_resnext", 0),
          BottleneckEntry<kShallowSe>("shallow_se_resnext", 0), ShallowSwinEntry(),
          ShallowGpt2Entry()};
}

// For tests that train, still smaller: of residual networks the first two stages alone, which have
// a twentieth of the weights.
inline constexpr BottleneckOptions kTinyV1 = {.blocks = {1, 2, 0, 0}, .stride_in_first = true};
inline constexpr BottleneckOptions kTinySe = {
    .blocks = {1, 2, 0, 0}, .groups = 32, .group_width = 4, .squeeze_excite = true};

inline std::vector<ModelEntry> TinyModels() {
  return {BottleneckEntry<kTinyV1>("tiny_resnet_v1", 0),
          BottleneckEntry<kTinySe>("tiny_se_resnext", 0), ShallowSwinEntry(), ShallowGpt2Entry()};
}

inline ImageSize SmallImage(const ModelEntry& entry) {
  return entry.image.height == 224 ? ImageSize{32, 32} : entry.image;
}

}  // namespace assay::train

#endif  // ASSAY_TESTS_UNIT_RUNNERS_TRAIN_SHALLOW_MODELS_H_
