// Condition and Rule: which points of a grid an entry of `exclude` or `include` means.
// Private to common/matrix. Thread rule: pure functions, any thread.
#ifndef ASSAY_COMMON_MATRIX_CONDITION_H_
#define ASSAY_COMMON_MATRIX_CONDITION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/matrix/axis.h"
#include "common/yaml/diagnostics.h"
#include "common/yaml/yaml_tree.h"

namespace assay {

// On one field: equal to one of `any_of`, or within all the bounds. `max` is within no bound.
struct Condition {
  Axis axis = Axis::kModel;
  std::vector<AxisValue> any_of;        // empty: bounds decide
  std::optional<int64_t> above, below;  // exclusive
  std::optional<int64_t> from, to;      // inclusive

  bool Holds(const Spec& spec) const;
};

// Holds where all its conditions do.
struct Rule {
  Position at;
  std::string path;
  std::vector<Condition> conditions;

  bool Holds(const Spec& spec) const;
};

// Entries of one list at most: each is checked on every point.
inline constexpr size_t kMaxRules = 1'000;

// Keys of the map form of a condition: above, below, from, to.
std::span<const std::string_view> BoundKeys();

// Entries of `exclude` or `include`; faults go to `diagnostics`.
std::vector<Rule> RulesFrom(const YamlNode& node, const std::string& path,
                            Diagnostics* diagnostics);

}  // namespace assay

#endif  // ASSAY_COMMON_MATRIX_CONDITION_H_
