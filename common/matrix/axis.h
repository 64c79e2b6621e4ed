// Axis: the table of what a spec is made of, from which the checker, the key and the JSON Schema
// are made. Private to common/matrix. Thread rule: pure functions, any thread.
#ifndef ASSAY_COMMON_MATRIX_AXIS_H_
#define ASSAY_COMMON_MATRIX_AXIS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/matrix/spec.h"
#include "common/yaml/yaml_tree.h"

namespace assay {

enum class Axis {
  kStack,
  kModel,
  kMode,
  kPrecision,
  kBatch,
  kLane,
  kLayout,
  kAccumulate,
  kScaling,
  kImage,
  kGpus,
  kNodes,
  // Settings of a block rather than axes: part of a spec and of its key, one value a block.
  kThermal,
  kColocate,
  kData,
};

enum class AxisKind {
  kWord,     // one of WordsOf(axis)
  kName,     // free: the catalogue cannot know every stack
  kInteger,  // least..most
  kBatch,    // least..most, or max
  kImage,    // HEIGHTxWIDTH, or one number for a square
};

struct AxisInfo {
  Axis axis;
  std::string_view name;
  AxisKind kind;
  int64_t least;
  int64_t most;
  std::string_view doc;
};

// In the order of the enum. The first twelve may stand under `axes`; all may stand in a condition.
std::span<const AxisInfo> AllAxes();
std::span<const AxisInfo> WrittenAxes();
const AxisInfo& InfoOf(Axis axis);
const AxisInfo* AxisByName(std::string_view name);  // null where there is none

// Before the name of a model that the catalogue lacks: one of a stack that somebody installed
// (docs/runner-protocol.md).
inline constexpr std::string_view kOwnModelPrefix = "own/";

// Values of a kWord axis, but for models of one's own; empty for other kinds.
std::vector<std::string_view> WordsOf(Axis axis);

inline bool IsNumeric(AxisKind kind) {
  return kind == AxisKind::kInteger || kind == AxisKind::kBatch;
}

// `text` is the canonical spelling ("64", "max", "224x224"); `number` is set for numeric kinds
// only, kBatchMax for max.
struct AxisValue {
  std::string text;
  int64_t number = 0;
  friend bool operator==(const AxisValue& a, const AxisValue& b) { return a.text == b.text; }
};

// InvalidArgument whose message is "what is wrong; remedy", with no position.
absl::StatusOr<AxisValue> AxisValueFrom(const YamlNode& node, const AxisInfo& info);

void SetAxis(Spec* spec, Axis axis, const AxisValue& value);
AxisValue GetAxis(const Spec& spec, Axis axis);

// Sets layout and image, where they are empty, to the model's defaults.
void FillModelDefaults(Spec* spec);

// Value the axis has where nobody names it, for a spec of this model.
AxisValue DefaultOf(Axis axis, std::string_view model);

}  // namespace assay

#endif  // ASSAY_COMMON_MATRIX_AXIS_H_
