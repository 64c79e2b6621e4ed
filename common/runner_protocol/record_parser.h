// The reader of a runner's records: one line in, one typed record or one sentence out.
//
// A runner is a foreign program: whatever its line holds (a megabyte of brackets, NaN, bytes that
// are not UTF-8, a text where a number belongs), ParseRecordLine returns and neither throws nor
// crashes. It reads with nlohmann's SAX interface and gives up at the first value that is nested
// deeper than a record can be, so that its memory and its stack do not grow with the nesting. Keys
// it does not know are skipped: a newer runner may say more.
//
// Header-only and free of abseil and fmt, as everything in this folder. Thread rule: pure, any
// thread.
#ifndef ASSAY_COMMON_RUNNER_PROTOCOL_RECORD_PARSER_H_
#define ASSAY_COMMON_RUNNER_PROTOCOL_RECORD_PARSER_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/runner_protocol/records.h"

namespace assay::record {

using FieldValue = std::variant<double, int64_t, std::string, bool>;

struct Hello {
  int64_t protocol = 0;
  std::string runner;
  std::string version;
  int64_t pid = 0;
  std::string uuid;  // of the device the runner opened; empty on a CPU
};

struct Joined {};

struct Phase {
  std::string phase;  // load, setup, warmup, measure or finish
};

struct Progress {
  int64_t step = 0;
  std::optional<double> throughput;
  std::optional<double> seconds_left;
};

struct Result {
  std::string outcome;  // ok, mem_limit, fail or unsupported: a runner decides no other
  std::string reason;
  std::string message;
  // In the order of the line, without nulls; a list comes as its texts joined by ';'. Names are not
  // checked here: the agent knows catalog/fields.yaml.
  std::vector<std::pair<std::string, FieldValue>> fields;
};

using Parsed = std::variant<Hello, Joined, Phase, Progress, Result>;

struct ParseResult {
  std::optional<Parsed> record;  // absent: the line is not a record
  std::string error;             // then one sentence for the message of `bad_output`
};

namespace internal {

// Our records need three levels (a list in "fields"); the rest is for keys of a newer runner.
inline constexpr int kMostDepth = 16;
inline constexpr size_t kMostFields = 1000;
inline constexpr size_t kMostQuotedBytes = 60;

// `text` as it may stand in a message: printable ASCII alone, cut.
inline std::string Quoted(std::string_view text) {
  std::string shown = "'";
  for (const char c : text.substr(0, kMostQuotedBytes)) {
    shown += c >= 0x20 && c < 0x7F ? c : '?';
  }
  if (text.size() > kMostQuotedBytes) shown += "...";
  return shown + "'";
}

using Scalar = std::variant<std::monostate, double, int64_t, std::string, bool>;

// Collects the scalars of the record itself and of its "fields". What is nested elsewhere is
// skipped as far as kMostDepth.
class Collector final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return Take(std::monostate()); }
  bool boolean(bool value) override { return Take(value); }
  bool number_integer(number_integer_t value) override { return Take(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Take(static_cast<double>(value));
    }
    return Take(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    if (!std::isfinite(value)) return Take(std::monostate());
    return Take(value);
  }
  bool string(string_t& value) override { return Take(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return Fail("holds binary data"); }

  bool start_object(size_t /*size*/) override {
    if (list_ != nullptr) return Fail("has an object inside a list of 'fields'");
    if (depth_ == 1 && key_ == "fields") in_fields_ = true;
    if (depth_ == 2 && in_fields_) return Fail("has an object as the value of a field");
    return Deeper();
  }
  bool end_object() override {
    --depth_;
    if (depth_ == 1) in_fields_ = false;
    return true;
  }
  bool start_array(size_t /*size*/) override {
    if (depth_ == 0) return Fail("is not an object");
    if (depth_ == 1 && key_ == "fields") return Fail("has 'fields' that is no object");
    if (list_ != nullptr) return Fail("has a list inside a list of 'fields'");
    if (depth_ == 2 && in_fields_) {
      if (!AddField(std::string())) return false;
      list_ = &std::get<std::string>(fields_.back().second);
      list_empty_ = true;
    }
    return Deeper();
  }
  bool end_array() override {
    --depth_;
    list_ = nullptr;
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1 || (depth_ == 2 && in_fields_)) key_ = std::move(value);
    return true;
  }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return Fail("is not JSON at byte " + std::to_string(position));
  }

  const std::string& error() const { return error_; }
  const Scalar* Find(std::string_view name) const {
    for (const auto& [key, value] : scalars_) {
      if (key == name) return &value;
    }
    return nullptr;
  }
  std::vector<std::pair<std::string, FieldValue>> TakeFields() { return std::move(fields_); }
  bool is_object() const { return saw_object_; }

 private:
  bool Fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return false;
  }
  bool Deeper() {
    if (++depth_ > kMostDepth) return Fail("is nested too deeply");
    saw_object_ = true;
    return true;
  }
  bool AddField(FieldValue value) {
    if (fields_.size() >= kMostFields) return Fail("has too many fields");
    for (const auto& [name, known] : fields_) {
      if (name == key_) return Fail("has the field " + Quoted(key_) + " twice");
    }
    fields_.emplace_back(key_, std::move(value));
    return true;
  }
  bool Take(Scalar value) {
    if (depth_ == 0) return Fail("is not an object");
    if (list_ != nullptr) return TakeListItem(std::move(value));
    if (depth_ == 1) {
      if (Find(key_) != nullptr) return Fail("has the key " + Quoted(key_) + " twice");
      if (key_ == "fields" && value.index() != 0) return Fail("has 'fields' that is no object");
      if (scalars_.size() >= kMostFields) return Fail("has too many keys");
      scalars_.emplace_back(key_, std::move(value));
    } else if (depth_ == 2 && in_fields_ && value.index() != 0) {
      return AddField(std::visit(
          [](auto&& held) -> FieldValue {
            if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
              return false;
            } else {
              return std::forward<decltype(held)>(held);
            }
          },
          std::move(value)));
    }
    return true;
  }
  bool TakeListItem(Scalar value) {
    auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) return Fail("has a list in 'fields' that is not of texts");
    for (char& c : *text) {
      if (c == ';') c = ',';
    }
    if (!list_empty_) *list_ += ';';
    list_empty_ = false;
    *list_ += *text;
    return true;
  }

  int depth_ = 0;
  bool saw_object_ = false;
  bool in_fields_ = false;
  bool list_empty_ = true;
  std::string* list_ = nullptr;  // the field whose list is open
  std::string key_;
  std::vector<std::pair<std::string, Scalar>> scalars_;
  std::vector<std::pair<std::string, FieldValue>> fields_;
  std::string error_;
};

// Reads typed members of a collected record and remembers the first fault.
class Members {
 public:
  explicit Members(const Collector& collected) : collected_(collected) {}

  std::string Text(std::string_view name, bool required) {
    const Scalar* value = Known(name, required);
    if (value == nullptr) return "";
    const auto* text = std::get_if<std::string>(value);
    if (text == nullptr) Wrong(name, "a text");
    return text != nullptr ? *text : "";
  }
  int64_t Integer(std::string_view name, bool required) {
    const Scalar* value = Known(name, required);
    if (value == nullptr) return 0;
    const auto* integer = std::get_if<int64_t>(value);
    if (integer == nullptr) Wrong(name, "an integer");
    return integer != nullptr ? *integer : 0;
  }
  std::optional<double> Number(std::string_view name) {
    const Scalar* value = Known(name, false);
    if (value == nullptr) return std::nullopt;
    if (const auto* number = std::get_if<double>(value)) return *number;
    if (const auto* integer = std::get_if<int64_t>(value)) return static_cast<double>(*integer);
    Wrong(name, "a number");
    return std::nullopt;
  }
  void Wrong(std::string_view name, std::string_view wanted) {
    if (error_.empty()) {
      error_ = "has a '" + std::string(name) + "' that is not " + std::string(wanted);
    }
  }
  const std::string& error() const { return error_; }

 private:
  const Scalar* Known(std::string_view name, bool required) {
    const Scalar* value = collected_.Find(name);
    if (value != nullptr && value->index() != 0) return value;
    if (required && error_.empty()) error_ = "lacks '" + std::string(name) + "'";
    return nullptr;
  }

  const Collector& collected_;
  std::string error_;
};

inline bool OneOf(std::string_view text, std::initializer_list<std::string_view> values) {
  for (const std::string_view value : values) {
    if (text == value) return true;
  }
  return false;
}

inline std::optional<Parsed> Build(Collector& collected, Members& members) {
  const std::string kind = members.Text("record", true);
  if (!members.error().empty()) return std::nullopt;
  if (kind == kHello) {
    return Hello{members.Integer("protocol", true), members.Text("runner", true),
                 members.Text("version", false), members.Integer("pid", false),
                 members.Text("uuid", false)};
  }
  if (kind == kJoined) return Joined{};
  if (kind == kPhase) {
    Phase phase{members.Text("phase", true)};
    if (members.error().empty() &&
        !OneOf(phase.phase, {"load", "setup", "warmup", "measure", "finish"})) {
      members.Wrong("phase", "a phase of the protocol");
    }
    return phase;
  }
  if (kind == kProgress) {
    return Progress{members.Integer("step", true), members.Number("throughput"),
                    members.Number("seconds_left")};
  }
  if (kind == kResult) {
    Result result{members.Text("outcome", true), members.Text("reason", false),
                  members.Text("message", false), collected.TakeFields()};
    if (members.error().empty() &&
        !OneOf(result.outcome, {"ok", "mem_limit", "fail", "unsupported"})) {
      members.Wrong("outcome", "ok, mem_limit, fail or unsupported");
    }
    return result;
  }
  members.Wrong("record", "a kind of the protocol: " + Quoted(kind));
  return std::nullopt;
}

}  // namespace internal

// `line` is without its line feed. Never throws.
inline ParseResult ParseRecordLine(std::string_view line) noexcept {
  ParseResult parsed;
  try {
    std::string fault;
    if (line.size() > static_cast<size_t>(kMaxLineBytes)) {
      fault = "is longer than 1 MiB";
    } else if (line.find('\0') != std::string_view::npos) {
      fault = "has a NUL byte";  // where nlohmann's lexer would see the end
    } else {
      internal::Collector collected;
      nlohmann::json::sax_parse(line.begin(), line.end(), &collected);
      fault = collected.error();
      if (fault.empty() && !collected.is_object()) fault = "is not an object";
      if (fault.empty()) {
        internal::Members members(collected);
        parsed.record = internal::Build(collected, members);
        fault = members.error();
      }
    }
    if (!fault.empty()) {
      parsed.record.reset();
      parsed.error = "a record line of the runner " + fault + ": " + internal::Quoted(line);
    }
  } catch (const std::exception&) {
    parsed.record.reset();
    parsed.error = "a record line could not be read";
  }
  return parsed;
}

}  // namespace assay::record

#endif  // ASSAY_COMMON_RUNNER_PROTOCOL_RECORD_PARSER_H_
