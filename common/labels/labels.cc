#include "common/labels/labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/status/status.h"

namespace assay {
namespace {

bool IsName(std::string_view name) {
  if (name.empty() || name.size() > kMaxLabelNameBytes || name[0] < 'a' || name[0] > 'z') {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
  });
}

bool IsValue(std::string_view value) {
  return !value.empty() && value.size() <= kMaxLabelValueBytes &&
         std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// A refused name may be of any length and any bytes.
std::string Shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kMaxLabelNameBytes + 1)) {
    out += c >= ' ' && c <= '~' ? c : '?';
  }
  return out;
}

absl::Status CheckLabel(const std::string& name, const std::string& value) {
  if (!IsName(name)) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no label name: a lower-case letter, then at most {} of a-z 0-9 _ . -",
                    Shown(name), kMaxLabelNameBytes - 1));
  }
  if (!IsValue(value)) {
    return absl::InvalidArgumentError(
        fmt::format("the value of label {} is not 1 to {} printable ASCII characters", name,
                    kMaxLabelValueBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLabels(const Labels& labels) {
  if (labels.size() > kMaxLabels) {
    return absl::InvalidArgumentError(
        fmt::format("{} labels; a run takes at most {}", labels.size(), kMaxLabels));
  }
  for (const auto& [name, value] : labels) ASSAY_RETURN_IF_ERROR(CheckLabel(name, value));
  return absl::OkStatus();
}

absl::StatusOr<Labels> ParseLabels(const std::vector<std::string>& words) {
  Labels labels;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("a label is NAME=VALUE, and '{}' has no '='", Shown(word)));
    }
    const std::string name = word.substr(0, equals);
    ASSAY_RETURN_IF_ERROR(CheckLabel(name, word.substr(equals + 1)));
    if (!labels.emplace(name, word.substr(equals + 1)).second) {
      return absl::InvalidArgumentError(fmt::format("label {} is given twice", name));
    }
  }
  ASSAY_RETURN_IF_ERROR(CheckLabels(labels));
  return labels;
}

std::string LabelsText(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

bool HasLabels(const Labels& labels, const Labels& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto found = labels.find(label.first);
    return found != labels.end() && found->second == label.second;
  });
}

}  // namespace assay
