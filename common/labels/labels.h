// Labels: what users write on a run to find it again, as name=value.
//
// A name is [a-z][a-z0-9_.-]{0,62}, a value 1 to 128 bytes of printable ASCII, and a run has at
// most 32 of them: they are copied into lists, files and metrics by programs of any kind. One
// checker for the command line, the coordinator, its store and merged files. Pure; any thread.
#ifndef ASSAY_COMMON_LABELS_LABELS_H_
#define ASSAY_COMMON_LABELS_LABELS_H_

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

using Labels = std::map<std::string, std::string>;

inline constexpr size_t kMaxLabels = 32;
inline constexpr size_t kMaxLabelNameBytes = 63;
inline constexpr size_t kMaxLabelValueBytes = 128;

// InvalidArgument with one sentence that names the first label that is not allowed.
absl::Status CheckLabels(const Labels& labels);

// Of "name=value" words; a name that is given twice is refused.
absl::StatusOr<Labels> ParseLabels(const std::vector<std::string>& words);

// "a=1 b=x"; empty for none.
std::string LabelsText(const Labels& labels);

// `labels` has every one of `wanted`.
bool HasLabels(const Labels& labels, const Labels& wanted);

}  // namespace assay

#endif  // ASSAY_COMMON_LABELS_LABELS_H_
