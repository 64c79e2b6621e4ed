#include "common/yaml/scalars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace assay {
namespace {

absl::Status Wrong(const std::string& message) { return absl::InvalidArgumentError(message); }

bool IsDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string Lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool IsFlagWord(std::string_view text) {
  static constexpr std::array<std::string_view, 6> kWords = {"yes", "no",   "on",
                                                             "off", "true", "false"};
  const std::string lowered = Lowered(text);
  return std::find(kWords.begin(), kWords.end(), lowered) != kWords.end();
}

std::string Shown(std::string_view text) { return "'" + Printable(text, 60) + "'"; }

// "1e3" as the integer it stands for, where it stands for one.
std::optional<std::string> Unfolded(std::string_view text) {
  const size_t e = text.find_first_of("eE");
  if (e == std::string_view::npos || !IsDigits(text.substr(0, e))) return std::nullopt;
  std::string_view power = text.substr(e + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  if (!IsDigits(power) || power.size() > 2 || e > 18) return std::nullopt;
  const int zeros = power.size() == 1 ? power[0] - '0' : (power[0] - '0') * 10 + power[1] - '0';
  if (zeros > 18) return std::nullopt;
  return std::string(text.substr(0, e)) + std::string(static_cast<size_t>(zeros), '0');
}

// "1e-2", "2.5E3".
bool HasExponent(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() &&
         text.find_first_of("eE") != std::string::npos;
}

std::string_view WithoutZeros(std::string_view digits) {
  const size_t first = digits.find_first_not_of('0');
  return first == std::string_view::npos ? std::string_view("0") : digits.substr(first);
}

// Digits with no leading zero but in "0" itself.
bool IsPlainInteger(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return IsDigits(text) && (text.size() == 1 || text[0] != '0');
}

// Sentence for a scalar that is no number of the wanted form.
absl::Status NoNumber(const std::string& text, std::string_view wanted) {
  if (IsFlagWord(text)) {
    return Wrong(fmt::format("{} is a yes/no word, not a number; write {}", Shown(text), wanted));
  }
  if (const auto unfolded = Unfolded(text)) {
    return Wrong(fmt::format("{} has an exponent; write {}", Shown(text), *unfolded));
  }
  if (HasExponent(text)) return Wrong(fmt::format("{} has an exponent; write it out", Shown(text)));
  const std::string_view digits =
      std::string_view(text).substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0);
  if (text.starts_with('+') && IsPlainInteger(digits)) {
    return Wrong(fmt::format("{} has a sign; write {}", Shown(text), Printable(digits, 40)));
  }
  if (text.starts_with('.') && IsDigits(digits.substr(1))) {
    return Wrong(
        fmt::format("{} begins with a point; write 0{}", Shown(text), Printable(digits, 40)));
  }
  if (IsDigits(digits) && digits.size() > 1 && digits[0] == '0') {
    return Wrong(fmt::format("{} has a leading zero, which some readers take for octal; write {}",
                             Shown(text), Printable(WithoutZeros(digits), 40)));
  }
  if (text.find(',') != std::string::npos) {
    return Wrong(fmt::format("{} is not a number; the decimal sign is a point", Shown(text)));
  }
  return Wrong(fmt::format("{} is not a number; write {}", Shown(text), wanted));
}

absl::Status NotPlainScalar(const YamlNode& node, std::string_view wanted) {
  if (node.IsScalar() && node.quoted) {
    return Wrong(
        fmt::format("{} in quotes is text; write {} without quotes", Shown(node.text), wanted));
  }
  return Wrong(fmt::format("{} where {} is wanted", Describe(node), wanted));
}

absl::StatusOr<double> DecimalOf(std::string_view text, const std::string& whole,
                                 std::string_view wanted) {
  const size_t point = text.find('.');
  const bool formed = IsPlainInteger(text.substr(0, point)) &&
                      (point == std::string_view::npos || IsDigits(text.substr(point + 1)));
  double value = 0;
  if (!formed) return NoNumber(whole, wanted);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    const bool small = text.substr(0, point) == "0" || text.substr(0, point) == "-0";
    return Wrong(fmt::format("{} is too {}", Shown(whole), small ? "small" : "large"));
  }
  return value;
}

}  // namespace

std::string Describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kScalar:
      return Shown(node.text);
  }
  return "nothing";
}

absl::StatusOr<int64_t> IntegerOf(const YamlNode& node) {
  constexpr std::string_view kWanted = "a whole number";
  if (!node.IsScalar() || node.quoted) return NotPlainScalar(node, kWanted);
  const std::string& text = node.text;
  if (!IsPlainInteger(text)) {
    const size_t point = text.find('.');
    if (point != std::string::npos && IsDigits(text.substr(0, point)) &&
        IsDigits(text.substr(point + 1))) {
      return Wrong(fmt::format("{} is not a whole number", Shown(text)));
    }
    return NoNumber(text, kWanted);
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Wrong(fmt::format("{} is too large", Shown(text)));
  }
  return value;
}

absl::StatusOr<double> NumberOf(const YamlNode& node) {
  constexpr std::string_view kWanted = "a number such as 0.01 or 5";
  if (!node.IsScalar() || node.quoted) return NotPlainScalar(node, kWanted);
  return DecimalOf(node.text, node.text, kWanted);
}

absl::StatusOr<double> DurationOf(const YamlNode& node) {
  constexpr std::string_view kWanted = "a time with its unit, such as 500ms, 60s, 5m or 1h";
  if (!node.IsScalar()) return NotPlainScalar(node, kWanted);
  struct Unit {
    std::string_view name;
    double seconds;
  };
  static constexpr std::array<Unit, 4> kUnits = {{{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}}};
  for (const Unit& unit : kUnits) {
    std::string_view text = node.text;
    if (!text.ends_with(unit.name)) continue;
    text.remove_suffix(unit.name.size());
    auto value = DecimalOf(text, node.text, kWanted);
    if (!value.ok()) return value;
    return *value * unit.seconds;
  }
  const bool digit = !node.text.empty() && IsDigits(node.text.substr(node.text.size() - 1));
  return Wrong(fmt::format("{} {}; write {}", Shown(node.text),
                           digit ? "has no unit" : "ends with none of the units ms, s, m and h",
                           kWanted));
}

absl::StatusOr<bool> FlagOf(const YamlNode& node) {
  if (node.IsScalar() && !node.quoted && node.text == "true") return true;
  if (node.IsScalar() && !node.quoted && node.text == "false") return false;
  return Wrong(fmt::format("{} where true or false is wanted", Describe(node)));
}

absl::StatusOr<std::string> WordOf(const YamlNode& node, std::span<const std::string_view> words) {
  auto text = TextOf(node);
  if (text.ok()) return text;
  const bool flag = node.IsScalar();
  return Wrong(fmt::format("{} {}; write one of {}", Describe(node),
                           flag ? "is a yes/no word" : "where a word is wanted",
                           fmt::join(words, ", ")));
}

absl::StatusOr<std::string> TextOf(const YamlNode& node) {
  if (!node.IsScalar()) return Wrong(fmt::format("{} where text is wanted", Describe(node)));
  if (!node.quoted && IsFlagWord(node.text)) {
    return Wrong(fmt::format("{} is a yes/no word; put it in quotes if it is meant as text",
                             Shown(node.text)));
  }
  return node.text;
}

}  // namespace assay
