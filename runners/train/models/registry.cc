#include "runners/train/models/registry.h"

#include <charconv>

namespace assay::train {

#define ASSAY_MODEL(file, entry) ModelEntry entry();
#include "runners/train/models/models.def"
#undef ASSAY_MODEL

const std::vector<ModelEntry>& Models() {
  static const std::vector<ModelEntry> models = {
#define ASSAY_MODEL(file, entry) entry(),
#include "runners/train/models/models.def"
#undef ASSAY_MODEL
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
  const ImageSize &least = model.least_image, &most = model.most_image;
  if (size.height < least.height || size.height > most.height) return std::nullopt;
  if (size.width < least.width || size.width > most.width) return std::nullopt;
  return size;
}

}  // namespace assay::train
