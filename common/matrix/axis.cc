#include "common/matrix/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/catalog/workload_catalog.h"
#include "common/status/status.h"
#include "common/yaml/diagnostics.h"
#include "common/yaml/scalars.h"

namespace assay {
namespace {

constexpr size_t kWrittenAxes = 12;
constexpr size_t kMostNameBytes = 64;

constexpr std::array<AxisInfo, 15> kAxes = {{
    {Axis::kStack, "stack", AxisKind::kName, 0, 0,
     "Runner build with its framework; `newest` (default): the newest of the node that can run "
     "it."},
    {Axis::kModel, "model", AxisKind::kWord, 0, 0,
     "Model of the catalogue, or own/NAME of a stack of one's own; has no default."},
    {Axis::kMode, "mode", AxisKind::kWord, 0, 0,
     "train (default), infer, or peak: a ceiling of the card."},
    {Axis::kPrecision, "precision", AxisKind::kWord, 0, 0,
     "fp32 (default; TF32 off), tf32, amp-fp16 or amp-bf16."},
    {Axis::kBatch, "batch", AxisKind::kBatch, 1, 1'000'000'000,
     "Samples per GPU per optimizer step (default 1), or max: the largest that fits."},
    {Axis::kLane, "lane", AxisKind::kWord, 0, 0,
     "Optimisation: eager (default), graph, fused or compile."},
    {Axis::kLayout, "layout", AxisKind::kWord, 0, 0,
     "Memory format; the model's own default is the first that the catalogue lists for it."},
    {Axis::kAccumulate, "accumulate", AxisKind::kInteger, 1, 65'536,
     "Micro-batches per optimizer step (default 1); divides batch."},
    {Axis::kScaling, "scaling", AxisKind::kWord, 0, 0,
     "weak (default) keeps batch, strong keeps batch times ranks."},
    {Axis::kImage, "image", AxisKind::kImage, 1, 65'536,
     "HEIGHTxWIDTH, or one number for a square; default: the model's."},
    {Axis::kGpus, "gpus", AxisKind::kInteger, 1, 1'024, "Ranks on each node (default 1)."},
    {Axis::kNodes, "nodes", AxisKind::kInteger, 1, 65'536, "Nodes of the gang (default 1)."},
    {Axis::kThermal, "thermal", AxisKind::kWord, 0, 0,
     "settled (default): the card is heated up first; cold: it is not."},
    {Axis::kColocate, "colocate", AxisKind::kWord, 0, 0,
     "none (default): one measured cell a node at a time; all: the same cell on all GPUs at once."},
    {Axis::kData, "data", AxisKind::kWord, 0, 0,
     "synthetic (default): batches that lie on the device; host: copied from the host each step."},
}};

template <typename Strings>
std::vector<std::string_view> Views(const Strings& strings) {
  return {strings.begin(), strings.end()};
}

bool IsPlainName(std::string_view text) {
  return !text.empty() && text.size() <= kMostNameBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '+' || c == '-';
         });
}

absl::StatusOr<AxisValue> NameFrom(const YamlNode& node) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, TextOf(node));
  if (!IsPlainName(text)) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no name; use 1 to {} letters, digits and . _ + -", Printable(text, 60),
                    kMostNameBytes));
  }
  return AxisValue{text == "newest" ? "" : text, 0};
}

absl::StatusOr<AxisValue> IntegerFrom(const YamlNode& node, const AxisInfo& info) {
  if (info.kind == AxisKind::kBatch && node.IsScalar()) {
    if (node.text == "max") return AxisValue{"max", kBatchMax};
    static constexpr std::array<std::string_view, 1> kMax = {"max"};
    if (const std::string near = NearestWord(node.text, kMax); !near.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("'{}' is not a number; did you mean 'max'?", Printable(node.text, 60)));
    }
  }
  ASSAY_ASSIGN_OR_RETURN(const int64_t value, IntegerOf(node));
  if (value < info.least || value > info.most) {
    return absl::InvalidArgumentError(
        fmt::format("{} is outside {} to {}", value, info.least, info.most));
  }
  return AxisValue{fmt::format("{}", value), value};
}

absl::StatusOr<AxisValue> ImageFrom(const YamlNode& node, const AxisInfo& info) {
  if (node.IsScalar() && ParseImageSize(node.text)) return AxisValue{node.text, 0};
  const bool number =
      node.IsScalar() && node.text.find_first_not_of("0123456789.-") == std::string::npos;
  if (node.IsScalar() && !number) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is no image size; write HEIGHTxWIDTH, such as 800x1333, each side 1 to {}",
        Printable(node.text, 60), info.most));
  }
  ASSAY_ASSIGN_OR_RETURN(const AxisValue side, IntegerFrom(node, info));
  return AxisValue{fmt::format("{0}x{0}", side.number), 0};
}

absl::StatusOr<AxisValue> WordFrom(const YamlNode& node, const AxisInfo& info) {
  // With a prefix, so that a model of the catalogue that is misspelt is still told.
  if (info.axis == Axis::kModel && node.IsScalar() && node.text.starts_with(kOwnModelPrefix)) {
    if (IsPlainName(std::string_view(node.text).substr(kOwnModelPrefix.size()))) {
      return AxisValue{node.text, 0};
    }
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is no model of one's own; write {} and 1 to {} letters, digits and . _ + -",
        Printable(node.text, 60), kOwnModelPrefix, kMostNameBytes));
  }
  const std::vector<std::string_view> words = WordsOf(info.axis);
  ASSAY_ASSIGN_OR_RETURN(const std::string text, WordOf(node, words));
  if (std::find(words.begin(), words.end(), text) != words.end()) return AxisValue{text, 0};
  return absl::InvalidArgumentError(
      fmt::format("unknown {} '{}'{}", info.name, Printable(text, 60), Suggestion(text, words)));
}

}  // namespace

std::span<const AxisInfo> AllAxes() { return kAxes; }
std::span<const AxisInfo> WrittenAxes() { return std::span(kAxes).first(kWrittenAxes); }
const AxisInfo& InfoOf(Axis axis) { return kAxes[static_cast<size_t>(axis)]; }

const AxisInfo* AxisByName(std::string_view name) {
  for (const AxisInfo& info : kAxes) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::vector<std::string_view> WordsOf(Axis axis) {
  const WorkloadCatalog& catalog = BuiltinWorkloads();
  std::vector<std::string_view> words;
  switch (axis) {
    case Axis::kModel:
      for (const Workload& workload : catalog.workloads()) words.push_back(workload.name);
      return words;
    case Axis::kPrecision:
      for (const PrecisionFacts& precision : catalog.precisions()) words.push_back(precision.name);
      return words;
    case Axis::kMode:
      return Views(catalog.modes());
    case Axis::kLane:
      return Views(catalog.lanes());
    case Axis::kLayout:
      return Views(catalog.layouts());
    case Axis::kScaling:
      return {"weak", "strong"};
    case Axis::kThermal:
      return {"settled", "cold"};
    case Axis::kColocate:
      return {"none", "all"};
    case Axis::kData:
      return {"synthetic", "host"};
    default:
      return {};
  }
}

absl::StatusOr<AxisValue> AxisValueFrom(const YamlNode& node, const AxisInfo& info) {
  switch (info.kind) {
    case AxisKind::kWord:
      return WordFrom(node, info);
    case AxisKind::kName:
      return NameFrom(node);
    case AxisKind::kImage:
      return ImageFrom(node, info);
    case AxisKind::kInteger:
    case AxisKind::kBatch:
      return IntegerFrom(node, info);
  }
  return absl::InternalError("no such kind of axis");
}

void SetAxis(Spec* spec, Axis axis, const AxisValue& value) {
  switch (axis) {
    case Axis::kStack:
      spec->stack = value.text;
      return;
    case Axis::kModel:
      spec->model = value.text;
      return;
    case Axis::kMode:
      spec->mode = value.text;
      return;
    case Axis::kPrecision:
      spec->precision = value.text;
      return;
    case Axis::kBatch:
      spec->batch = value.number;
      return;
    case Axis::kLane:
      spec->lane = value.text;
      return;
    case Axis::kLayout:
      spec->layout = value.text;
      return;
    case Axis::kAccumulate:
      spec->accumulate = value.number;
      return;
    case Axis::kScaling:
      spec->scaling = value.text;
      return;
    case Axis::kImage:
      spec->image = value.text;
      return;
    case Axis::kGpus:
      spec->gpus = value.number;
      return;
    case Axis::kNodes:
      spec->nodes = value.number;
      return;
    case Axis::kThermal:
      spec->thermal = value.text;
      return;
    case Axis::kColocate:
      spec->colocate = value.text;
      return;
    case Axis::kData:
      spec->data = value.text;
      return;
  }
}

AxisValue GetAxis(const Spec& spec, Axis axis) {
  const auto number = [](int64_t value) { return AxisValue{fmt::format("{}", value), value}; };
  switch (axis) {
    case Axis::kStack:
      return {spec.stack, 0};
    case Axis::kModel:
      return {spec.model, 0};
    case Axis::kMode:
      return {spec.mode, 0};
    case Axis::kPrecision:
      return {spec.precision, 0};
    case Axis::kBatch:
      return spec.batch == kBatchMax ? AxisValue{"max", kBatchMax} : number(spec.batch);
    case Axis::kLane:
      return {spec.lane, 0};
    case Axis::kLayout:
      return {spec.layout, 0};
    case Axis::kAccumulate:
      return number(spec.accumulate);
    case Axis::kScaling:
      return {spec.scaling, 0};
    case Axis::kImage:
      return {spec.image, 0};
    case Axis::kGpus:
      return number(spec.gpus);
    case Axis::kNodes:
      return number(spec.nodes);
    case Axis::kThermal:
      return {spec.thermal, 0};
    case Axis::kColocate:
      return {spec.colocate, 0};
    case Axis::kData:
      return {spec.data, 0};
  }
  return {};
}

void FillModelDefaults(Spec* spec) {
  if (spec->layout.empty()) spec->layout = DefaultOf(Axis::kLayout, spec->model).text;
  if (spec->image.empty()) spec->image = DefaultOf(Axis::kImage, spec->model).text;
}

AxisValue DefaultOf(Axis axis, std::string_view model) {
  if (axis == Axis::kLayout || axis == Axis::kImage) {
    const Workload* workload = BuiltinWorkloads().Find(model);
    if (workload == nullptr) return {axis == Axis::kLayout ? Spec{}.layout : "", 0};
    return {axis == Axis::kLayout ? workload->layouts.front() : workload->default_image, 0};
  }
  static const Spec* const kDefaults = new Spec;
  return GetAxis(*kDefaults, axis);
}

}  // namespace assay
