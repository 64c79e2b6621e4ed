#include "runners/train/models/registry.h"

#include <charconv>

#include "runners/train/models/resnet50.h"

namespace assay::train {

const std::vector<ModelEntry>& Models() {
  static const std::vector<ModelEntry> models = {
      {.name = "resnet50",
       .parameters = kResNet50Parameters,
       .sample_unit = "img",
       .image = {224, 224},
       .least_image = 32,
       .make = MakeResNet50,
       .forward_flops = ResNet50ForwardFlops,
       .train_flops = ResNet50TrainFlops},
  };
  return models;
}

const ModelEntry* FindModel(const std::string& name) {
  for (const ModelEntry& model : Models()) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

std::optional<ImageSize> ParseImage(const std::string& text, const ModelEntry& model) {
  if (text.empty()) return model.image;
  const char* const end = text.data() + text.size();
  ImageSize size;
  const auto height = std::from_chars(text.data(), end, size.height);
  if (height.ec != std::errc() || height.ptr == end || *height.ptr != 'x') return std::nullopt;
  const auto width = std::from_chars(height.ptr + 1, end, size.width);
  if (width.ec != std::errc() || width.ptr != end) return std::nullopt;
  const auto fits = [&](int64_t n) { return n >= model.least_image && n <= 16384; };
  if (!fits(size.height) || !fits(size.width)) return std::nullopt;
  return size;
}

}  // namespace assay::train
