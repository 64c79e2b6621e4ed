// Record: one result as typed fields of catalog/fields.yaml. A field is known or it is not; there
// is no zero for missing.
//
// The field table is generated from catalog/fields.yaml into results_fields.gen.{h,cc}.
#ifndef ASSAY_COMMON_RESULTS_RECORD_H_
#define ASSAY_COMMON_RESULTS_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "results_fields.gen.h"  // enum class Field : uint16_t { kKey, ... }; kFieldCount

namespace assay {

// kCount is a whole number or the word `max`; a record holds it as text, JSON shows a number bare.
enum class FieldType { kText, kInteger, kNumber, kFlag, kList, kCount };
enum class FieldSource { kPlan, kCell, kRunner, kAgent, kComputed };

struct FieldInfo {
  Field field;
  std::string_view name;
  FieldType type;
  FieldSource source;
  std::string_view doc;
};

// In the order of catalog/fields.yaml, which is the order of columns everywhere.
std::span<const FieldInfo> AllFields();
const FieldInfo& InfoOf(Field field);
// "text", "an integer", "a number", "a flag", "a list of texts": for messages.
std::string_view FieldTypeName(FieldType type);
std::optional<Field> FieldByName(std::string_view name);

// monostate: not known. Text is valid UTF-8; a number is finite. kList values are texts joined by
// ';', kCount values the digits of the number.
using Value = std::variant<std::monostate, std::string, int64_t, double, bool>;

class Record {
 public:
  bool Has(Field field) const;
  const Value& Get(Field field) const;
  std::optional<double> Number(Field field) const;  // kNumber, or kInteger widened
  std::optional<int64_t> Integer(Field field) const;
  std::optional<bool> Flag(Field field) const;
  std::string Text(Field field) const;  // "" where not known
  std::vector<std::string> List(Field field) const;

  // Sets a value of the field's type; an integer is accepted for a number and for a count.
  // InvalidArgument names the field for a wrong type. A non-finite number clears the field; bytes
  // that are not UTF-8 are replaced.
  absl::Status Set(Field field, Value value);
  void SetText(Field field, std::string_view text);  // text or list fields only
  // Joins `items` by ';' (one inside an item becomes ','). InvalidArgument unless a list field.
  absl::Status SetList(Field field, std::span<const std::string> items);
  void Clear(Field field);
  // Takes over every field that `other` knows.
  void Merge(const Record& other);

  friend bool operator==(const Record&, const Record&) = default;

 private:
  // Sorted by field: most records know a third of the fields.
  std::vector<std::pair<Field, Value>> values_;
};

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_RECORD_H_
