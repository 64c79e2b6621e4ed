#include "runners/train/refusal.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runners/train/lanes/lane.h"
#include "runners/train/models/registry.h"
#include "runners/train/precision/precision.h"

namespace assay::train {
namespace {

RunnerResult Unsupported(const char* reason, const std::string& message) {
  return {"unsupported", reason, message, nlohmann::json::object()};
}

std::string Text(const ImageSize& size) {
  return std::to_string(size.height) + "x" + std::to_string(size.width);
}

std::string Sides(const ModelEntry& model) {
  return "from " + Text(model.least_image) + " to " + Text(model.most_image);
}

}  // namespace

std::optional<RunnerResult> RefusePrecision(const std::string& precision, int compute_capability) {
  if (!ParsePrecision(precision)) {
    return Unsupported("unsupported_precision", "precision '" + precision +
                                                    "' is not known; fp32, tf32, amp-fp16 and "
                                                    "amp-bf16 are");
  }
  if (compute_capability == 0) {
    if (precision == "tf32" || precision == "amp-fp16") {
      return Unsupported("unsupported_precision", "a CPU has no " + precision);
    }
    return std::nullopt;
  }
  const bool needs_ampere = precision == "tf32" || precision == "amp-bf16";
  const int least = needs_ampere ? 80 : precision == "amp-fp16" ? 53 : 0;
  if (compute_capability >= least) return std::nullopt;
  const auto dotted = [](int cc) {
    return std::to_string(cc / 10) + "." + std::to_string(cc % 10);
  };
  return Unsupported("unsupported_precision", precision + " needs compute capability " +
                                                  dotted(least) + "; this GPU has " +
                                                  dotted(compute_capability));
}

std::optional<RunnerResult> Refuse(const CellFile& cell) {
  const Spec& spec = cell.spec;
  const ModelEntry* model = FindModel(spec.model);
  if (model == nullptr) {
    return Unsupported("model_not_in_stack", "this stack has no model '" + spec.model + "'");
  }
  if (spec.mode != "train" && spec.mode != "infer") {
    return Unsupported("mode_not_in_stack", "this stack has no mode '" + spec.mode + "'");
  }
  const std::vector<std::string>& lanes = LaneNames();
  if (std::find(lanes.begin(), lanes.end(), spec.lane) == lanes.end()) {
    return Unsupported("lane_not_in_stack", "this stack has no lane '" + spec.lane + "' yet");
  }
  if (spec.lane == "graph" && cell.device_kind == "cpu") {
    return Unsupported("lane_not_in_stack",
                       "lane graph replays a step as a CUDA Graph, and a CPU has none");
  }
  if (spec.lane == "graph" && model->no_graph != nullptr) {
    return Unsupported("lane_not_in_stack", model->no_graph);
  }
  if (cell.world_size != 1) {
    return Unsupported("value_not_in_stack", "this stack runs on one GPU yet, " +
                                                 std::to_string(cell.world_size) +
                                                 " ranks were asked for");
  }
  if (spec.layout != "channels-last" && spec.layout != "contiguous") {
    return Unsupported("value_not_in_stack", "this stack has no layout '" + spec.layout + "'");
  }
  if (spec.data != "synthetic" && spec.data != "host") {
    return Unsupported("value_not_in_stack", "this stack has no data '" + spec.data + "'");
  }
  if (spec.data == "host" && cell.device_kind == "cpu") {
    return Unsupported("value_not_in_stack",
                       "data host is copied from the host to a device, and a CPU works on the "
                       "host's memory itself");
  }
  if (!ParseImage(spec.image, *model)) {
    return Unsupported("value_not_in_stack", "image '" + spec.image + "' is not HEIGHTxWIDTH " +
                                                 Sides(*model) + ", for " + spec.model);
  }
  if (cell.device_kind != "cpu" && cell.device_kind != "cuda") {
    return Unsupported("value_not_in_stack",
                       "this stack runs on no device of kind '" + cell.device_kind + "'");
  }
  return RefusePrecision(spec.precision, cell.device_kind == "cpu" ? 0 : 80);
}

}  // namespace assay::train
