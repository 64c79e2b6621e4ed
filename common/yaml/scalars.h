// What a scalar means, by own rules: YAML's readings of 064, no and 1e3 differ between versions and
// libraries, so each is refused with a sentence. Locale-free. Thread rule: pure functions.
#ifndef ASSAY_COMMON_YAML_SCALARS_H_
#define ASSAY_COMMON_YAML_SCALARS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/yaml/yaml_tree.h"

namespace assay {

// Each returns InvalidArgument whose message is "what is wrong; remedy", with no position.

// Plain decimal digits, an optional minus, no leading zero, within int64.
absl::StatusOr<int64_t> IntegerOf(const YamlNode& node);
// As an integer, or with a decimal point and digits on both sides; no exponent.
absl::StatusOr<double> NumberOf(const YamlNode& node);
// A number with its unit: 500ms, 60s, 5m, 1.5h; in seconds.
absl::StatusOr<double> DurationOf(const YamlNode& node);
// true or false, nothing else.
absl::StatusOr<bool> FlagOf(const YamlNode& node);
// Quoted or plain; plain yes/no words are refused, since other readers take them for flags.
absl::StatusOr<std::string> TextOf(const YamlNode& node);
// As TextOf, of a text that should be one of `words` (and is not looked up): what is no text names
// them.
absl::StatusOr<std::string> WordOf(const YamlNode& node, std::span<const std::string_view> words);

// "a list", "a map", "nothing", "'064'": what the node is, for a message.
std::string Describe(const YamlNode& node);

}  // namespace assay

#endif  // ASSAY_COMMON_YAML_SCALARS_H_
