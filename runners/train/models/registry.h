// Registry: the models of this runner, by their names in catalog/workloads.yaml.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_REGISTRY_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runners/train/models/model.h"

namespace assay::train {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
};

enum class InputKind { kImages, kTokens };

struct ModelEntry {
  std::string name;
  int64_t parameters = 0;   // trainable
  std::string sample_unit;  // "img"; throughput is in sample_unit/s
  InputKind input = InputKind::kImages;
  ImageSize image;  // the default; of tokens 1xTOKENS, one row
  // Between these, each side: the smallest that leaves something after the last layer, and the
  // largest that the layers take.
  ImageSize least_image = {1, 1};
  ImageSize most_image = {16384, 16384};
  std::unique_ptr<Model> (*make)(const Placement&) = nullptr;
  // Why no lane records it; null where one does.
  const char* no_graph = nullptr;
  // Of one sample: a forward pass, and a training step, whose backward pass computes gradients of
  // weights and of inputs, but for the image's, which nobody asks for.
  int64_t (*forward_flops)(int64_t height, int64_t width) = nullptr;
  int64_t (*train_flops)(int64_t height, int64_t width) = nullptr;
};

const std::vector<ModelEntry>& Models();
const ModelEntry* FindModel(const std::string& name);  // null where it is not known

// "224x224", HEIGHTxWIDTH; empty gives the model's default. nullopt for anything else.
std::optional<ImageSize> ParseImage(const std::string& text, const ModelEntry& model);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_REGISTRY_H_
