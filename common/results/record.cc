#include "common/results/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/text/utf8.h"

namespace assay {
namespace {

const Value kUnknown;

auto LowerBound(auto& values, Field field) {
  return std::lower_bound(values.begin(), values.end(), field,
                          [](const auto& entry, Field at) { return entry.first < at; });
}

absl::Status WrongType(const FieldInfo& info, std::string_view given) {
  return absl::InvalidArgumentError(
      fmt::format("field '{}' takes {}, not {}", info.name, FieldTypeName(info.type), given));
}

std::string_view AlternativeName(const Value& value) {
  constexpr std::string_view kNames[] = {"nothing", "text", "an integer", "a number", "a flag"};
  return kNames[value.index()];
}

// As JSON writes one: no sign, no leading zero, and at most 18 digits, which fit 63 bits.
bool IsWholeNumber(std::string_view text) {
  if (text.empty() || text.size() > 18 || (text[0] == '0' && text.size() > 1)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string_view FieldTypeName(FieldType type) {
  switch (type) {
    case FieldType::kText:
      return "text";
    case FieldType::kInteger:
      return "an integer";
    case FieldType::kNumber:
      return "a number";
    case FieldType::kFlag:
      return "a flag";
    case FieldType::kList:
      return "a list of texts";
    case FieldType::kCount:
      return "a whole number or `max`";
  }
  return "text";
}

const FieldInfo& InfoOf(Field field) {
  const auto at = static_cast<size_t>(field);
  return AllFields()[at < kFieldCount ? at : 0];
}

std::optional<Field> FieldByName(std::string_view name) {
  static const auto* const by_name = [] {
    auto* map = new std::unordered_map<std::string_view, Field>;
    for (const FieldInfo& info : AllFields()) map->emplace(info.name, info.field);
    return map;
  }();
  const auto found = by_name->find(name);
  if (found == by_name->end()) return std::nullopt;
  return found->second;
}

bool Record::Has(Field field) const { return Get(field).index() != 0; }

const Value& Record::Get(Field field) const {
  const auto at = LowerBound(values_, field);
  return at != values_.end() && at->first == field ? at->second : kUnknown;
}

std::optional<double> Record::Number(Field field) const {
  const Value& value = Get(field);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  return std::nullopt;
}

std::optional<int64_t> Record::Integer(Field field) const {
  const auto* integer = std::get_if<int64_t>(&Get(field));
  return integer != nullptr ? std::optional<int64_t>(*integer) : std::nullopt;
}

std::optional<bool> Record::Flag(Field field) const {
  const auto* flag = std::get_if<bool>(&Get(field));
  return flag != nullptr ? std::optional<bool>(*flag) : std::nullopt;
}

std::string Record::Text(Field field) const {
  const auto* text = std::get_if<std::string>(&Get(field));
  return text != nullptr ? *text : std::string();
}

std::vector<std::string> Record::List(Field field) const {
  std::vector<std::string> items;
  const auto* text = std::get_if<std::string>(&Get(field));
  if (text == nullptr || text->empty()) return items;
  size_t start = 0;
  while (true) {
    const size_t end = text->find(';', start);
    items.push_back(text->substr(start, end - start));
    if (end == std::string::npos) return items;
    start = end + 1;
  }
}

absl::Status Record::Set(Field field, Value value) {
  const FieldInfo& info = InfoOf(field);
  if (std::holds_alternative<std::monostate>(value)) {
    Clear(field);
    return absl::OkStatus();
  }
  switch (info.type) {
    case FieldType::kText:
    case FieldType::kList: {
      auto* text = std::get_if<std::string>(&value);
      if (text == nullptr) return WrongType(info, AlternativeName(value));
      if (!IsUtf8(*text)) *text = ScrubUtf8(*text);
      break;
    }
    case FieldType::kCount: {
      if (const auto* integer = std::get_if<int64_t>(&value)) value = fmt::format("{}", *integer);
      const auto* text = std::get_if<std::string>(&value);
      if (text == nullptr) return WrongType(info, AlternativeName(value));
      if (*text != "max" && !IsWholeNumber(*text)) return WrongType(info, "another text");
      break;
    }
    case FieldType::kInteger:
      if (!std::holds_alternative<int64_t>(value)) return WrongType(info, AlternativeName(value));
      break;
    case FieldType::kNumber: {
      if (const auto* integer = std::get_if<int64_t>(&value)) {
        value = static_cast<double>(*integer);
      }
      const auto* number = std::get_if<double>(&value);
      if (number == nullptr) return WrongType(info, AlternativeName(value));
      if (!std::isfinite(*number)) {
        Clear(field);
        return absl::OkStatus();
      }
      break;
    }
    case FieldType::kFlag:
      if (!std::holds_alternative<bool>(value)) return WrongType(info, AlternativeName(value));
      break;
  }
  const auto at = LowerBound(values_, field);
  if (at != values_.end() && at->first == field) {
    at->second = std::move(value);
  } else {
    values_.insert(at, {field, std::move(value)});
  }
  return absl::OkStatus();
}

void Record::SetText(Field field, std::string_view text) {
  // A field that does not take text keeps what it has; that is a fault of the caller's source, not
  // of data, and a test of each caller sees the field missing.
  Set(field, std::string(text)).IgnoreError();
}

absl::Status Record::SetList(Field field, std::span<const std::string> items) {
  std::string joined;
  for (const std::string& item : items) {
    if (!joined.empty()) joined += ';';
    std::string clean = item;
    std::replace(clean.begin(), clean.end(), ';', ',');
    joined += clean;
  }
  return Set(field, std::move(joined));
}

void Record::Clear(Field field) {
  const auto at = LowerBound(values_, field);
  if (at != values_.end() && at->first == field) values_.erase(at);
}

void Record::Merge(const Record& other) {
  if (&other == this) return;
  for (const auto& [field, value] : other.values_) {
    const auto at = LowerBound(values_, field);
    if (at != values_.end() && at->first == field) {
      at->second = value;
    } else {
      values_.insert(at, {field, value});
    }
  }
}

}  // namespace assay
