// Rows as JSON objects: the columns `selection`, `spec` and `members` of the store, and the lines
// of .assay files. Pure; any thread.
//
// FromJson: keys that are absent keep their default, keys that are not known are skipped.
// InvalidArgument for text that is not such an object or a value of a wrong type or range.
#ifndef ASSAY_COORDINATOR_STORE_ROW_JSON_H_
#define ASSAY_COORDINATOR_STORE_ROW_JSON_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/cell/rows.h"

namespace assay {

// One line without line feed; bytes that are not UTF-8 become U+FFFD.
std::string SelectionJson(const Selection& selection);
absl::StatusOr<Selection> SelectionFromJson(std::string_view json);

// Only labels that CheckLabels takes are read.
std::string LabelsJson(const Labels& labels);
absl::StatusOr<Labels> LabelsFromJson(std::string_view json);

std::string SpecJson(const Spec& spec);
absl::StatusOr<Spec> SpecFromJsonText(std::string_view json);

std::string MembersJson(const std::vector<MemberRow>& members);
absl::StatusOr<std::vector<MemberRow>> MembersFromJson(std::string_view json);

std::string RunJson(const RunRow& run);
absl::StatusOr<RunRow> RunFromJson(std::string_view json);

std::string CellJson(const CellRow& cell);
absl::StatusOr<CellRow> CellFromJson(std::string_view json);

std::string AttemptJson(const AttemptRow& attempt);
absl::StatusOr<AttemptRow> AttemptFromJson(std::string_view json);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_STORE_ROW_JSON_H_
