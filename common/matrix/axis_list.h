// AxisList: the values of one axis as written: a scalar, a list, a range or a doubling.
// Private to common/matrix. Thread rule: pure functions, any thread.
#ifndef ASSAY_COMMON_MATRIX_AXIS_LIST_H_
#define ASSAY_COMMON_MATRIX_AXIS_LIST_H_

#include <string>
#include <vector>

#include "common/matrix/axis.h"
#include "common/yaml/diagnostics.h"
#include "common/yaml/yaml_tree.h"

namespace assay {

// Values of one axis at most: counted before a range is expanded.
inline constexpr int64_t kMaxAxisValues = 10'000;

// In the order written; faults go to `diagnostics` and leave the value out.
std::vector<AxisValue> AxisListFrom(const YamlNode& node, const std::string& path,
                                    const AxisInfo& info, Diagnostics* diagnostics);

// Notes keys of `node` that are not in `known`, and a node that is no map; true where it is one.
bool CheckKeys(const YamlNode& node, const std::string& path,
               std::span<const std::string_view> known, Diagnostics* diagnostics);

}  // namespace assay

#endif  // ASSAY_COMMON_MATRIX_AXIS_LIST_H_
