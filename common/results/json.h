// Results as JSON: what `assay results --format json`, the store and .assay files hold.
//
// A field that is not known is null, never a zero; a list is an array of texts; a flag is true or
// false. Numbers are written in the shortest form that reads back equal, whatever the locale is.
// nlohmann's type stays out of this header, so that no other target needs it. Thread rule: pure,
// any thread.
#ifndef ASSAY_COMMON_RESULTS_JSON_H_
#define ASSAY_COMMON_RESULTS_JSON_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/results/record.h"

namespace assay {

// One object on one line, with exactly `fields` as its keys, in their order.
std::string RecordToJson(const Record& record, std::span<const Field> fields);

// The same with the fields that are known only: what is stored.
std::string RecordToCompactJson(const Record& record);

// Reads either form. Keys that are no field of this version are skipped (a newer version wrote
// them). InvalidArgument for what is not such an object, nested deeper than an array, or of a wrong
// type; the message names the field.
absl::StatusOr<Record> RecordFromJson(std::string_view json);

// An array, one object a line, every field of AllFields() in each; ends in a line feed.
std::string WriteResultsJson(std::span<const Record> records);

// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string JsonString(std::string_view text);

// The shortest text that reads back equal, or "null" where it is not finite.
std::string JsonNumber(double value);

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_JSON_H_
