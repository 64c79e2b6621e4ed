#include "common/results/json.h"

#include <fmt/format.h>

#include <cmath>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/status/status.h"
#include "common/text/number_format.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

std::string JsonList(const std::vector<std::string>& items) {
  std::string json = "[";
  for (const std::string& item : items) {
    if (json.size() > 1) json += ',';
    json += JsonString(item);
  }
  return json + ']';
}

std::string JsonValue(const Record& record, Field field) {
  const Value& value = record.Get(field);
  if (const auto* text = std::get_if<std::string>(&value)) {
    const FieldType type = InfoOf(field).type;
    if (type == FieldType::kList) return JsonList(record.List(field));
    if (type == FieldType::kCount && *text != "max") return *text;
    return JsonString(*text);
  }
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value)) return JsonNumber(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return "null";
}

// Fills a record from one flat object. SAX, so that neither memory nor stack grows with the nesting
// of what a file holds.
class RecordReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return Take(Value()); }
  bool boolean(bool value) override { return Take(value); }
  bool number_integer(number_integer_t value) override { return Take(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Take(static_cast<double>(value));
    }
    return Take(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return Take(value); }
  bool string(string_t& value) override { return Take(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return Fail("holds binary data"); }
  bool key(string_t& value) override {
    name_ = std::move(value);
    field_ = FieldByName(name_);
    return true;
  }
  bool start_object(size_t /*size*/) override {
    if (in_object_) return Fail(fmt::format("has an object as its field '{}'", ScrubUtf8(name_)));
    in_object_ = true;
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(size_t /*size*/) override {
    if (!in_object_) return Fail("is not an object");
    if (in_list_) return Fail(fmt::format("has nested lists as its field '{}'", ScrubUtf8(name_)));
    if (field_ && InfoOf(*field_).type != FieldType::kList) {
      return Fail(fmt::format("has a list as its field '{}', which takes {}", name_,
                              FieldTypeName(InfoOf(*field_).type)));
    }
    in_list_ = true;
    items_.clear();
    return true;
  }
  bool end_array() override {
    in_list_ = false;
    return !field_ || Keep(record_.SetList(*field_, items_));
  }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return Fail(fmt::format("is not JSON at byte {}", position));
  }

  absl::StatusOr<Record> Finish() {
    if (error_.empty() && !in_object_) error_ = "is not an object";
    if (error_.empty()) return std::move(record_);
    return absl::InvalidArgumentError("a result record " + error_);
  }

 private:
  bool Fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return false;
  }
  bool Keep(const absl::Status& status) {
    return status.ok() || Fail("is of a wrong type: " + Message(status));
  }
  bool Take(Value value) {
    if (!in_object_) return Fail("is not an object");
    if (!in_list_) return !field_ || Keep(record_.Set(*field_, std::move(value)));
    auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) {
      // In a list of a field of a newer version anything flat may stand.
      if (!field_) return true;
      return Fail(fmt::format("has a list '{}' that is not of texts", name_));
    }
    items_.push_back(std::move(*text));
    return true;
  }

  Record record_;
  bool in_object_ = false;
  bool in_list_ = false;
  std::string name_;
  std::optional<Field> field_;
  std::vector<std::string> items_;
  std::string error_;
};

}  // namespace

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  for (const char c : ScrubUtf8(text)) {
    switch (c) {
      case '"':
        json += "\\\"";
        break;
      case '\\':
        json += "\\\\";
        break;
      case '\n':
        json += "\\n";
        break;
      case '\r':
        json += "\\r";
        break;
      case '\t':
        json += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          json += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          json += c;
        }
    }
  }
  return json + '"';
}

std::string JsonNumber(double value) {
  return std::isfinite(value) ? ShortestNumber(value) : std::string("null");
}

std::string RecordToJson(const Record& record, std::span<const Field> fields) {
  std::string json = "{";
  for (const Field field : fields) {
    if (json.size() > 1) json += ',';
    json += fmt::format("\"{}\":{}", InfoOf(field).name, JsonValue(record, field));
  }
  return json + '}';
}

std::string RecordToCompactJson(const Record& record) {
  std::vector<Field> known;
  for (const FieldInfo& info : AllFields()) {
    if (record.Has(info.field)) known.push_back(info.field);
  }
  return RecordToJson(record, known);
}

absl::StatusOr<Record> RecordFromJson(std::string_view json) {
  if (json.find('\0') != std::string_view::npos) {
    // nlohmann's lexer takes it as the end of the text.
    return absl::InvalidArgumentError("a result record has a NUL byte");
  }
  RecordReader reader;
  try {
    nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  } catch (const std::exception&) {
    return absl::InvalidArgumentError("a result record could not be read");
  }
  return reader.Finish();
}

std::string WriteResultsJson(std::span<const Record> records) {
  std::vector<Field> fields;
  for (const FieldInfo& info : AllFields()) fields.push_back(info.field);
  std::string json = "[";
  for (const Record& record : records) {
    json += json.size() > 1 ? ",\n" : "\n";
    json += RecordToJson(record, fields);
  }
  return json + (records.empty() ? "]\n" : "\n]\n");
}

}  // namespace assay
