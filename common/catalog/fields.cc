#include "common/catalog/fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/status/status.h"
#include "common/yaml/scalars.h"

namespace assay {
namespace {

std::optional<int> SmallNumber(std::string_view text) {
  if (text.empty() || text.size() > 2) return std::nullopt;
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

Fields::Fields(const YamlNode& node, std::string path, std::vector<std::string_view> known,
               Diagnostics* diagnostics)
    : node_(node), path_(std::move(path)), diagnostics_(diagnostics) {
  if (!node.IsMap()) {
    diagnostics_->Add(node.at, path_, fmt::format("{} where a map is wanted", Describe(node)));
    return;
  }
  for (const YamlEntry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    diagnostics_->Add(entry.key_at, PathOf(entry.key),
                      fmt::format("unknown key{}", Suggestion(entry.key, known)));
  }
}

std::string Fields::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void Fields::Note(const YamlNode& at, std::string_view key, std::string_view what) {
  diagnostics_->Add(at.at, PathOf(key), what);
}

const YamlNode* Fields::Get(std::string_view key, bool required) {
  const YamlEntry* entry = node_.Find(key);
  if (entry != nullptr) return entry->value.get();
  if (required) Note(node_, key, "this key is missing");
  return nullptr;
}

std::string Fields::Text(std::string_view key, bool required) {
  const YamlNode* node = Get(key, required);
  if (node == nullptr) return "";
  const auto value = TextOf(*node);
  if (value.ok()) return *value;
  Note(*node, key, Message(value.status()));
  return "";
}

std::optional<int64_t> Fields::Integer(std::string_view key, bool required) {
  const YamlNode* node = Get(key, required);
  if (node == nullptr) return std::nullopt;
  const auto value = IntegerOf(*node);
  if (value.ok()) return *value;
  Note(*node, key, Message(value.status()));
  return std::nullopt;
}

std::optional<double> Fields::Number(std::string_view key) {
  const YamlNode* node = Get(key, false);
  if (node == nullptr) return std::nullopt;
  const auto value = NumberOf(*node);
  if (value.ok()) return *value;
  Note(*node, key, Message(value.status()));
  return std::nullopt;
}

std::optional<bool> Fields::Flag(std::string_view key) {
  const YamlNode* node = Get(key, false);
  if (node == nullptr) return std::nullopt;
  const auto value = FlagOf(*node);
  if (value.ok()) return *value;
  Note(*node, key, Message(value.status()));
  return std::nullopt;
}

std::vector<std::string> Fields::Texts(std::string_view key, bool required) {
  std::vector<std::string> out;
  const YamlNode* list = List(key, required);
  if (list == nullptr) return out;
  for (const YamlPtr& item : list->items) {
    const auto value = TextOf(*item);
    if (value.ok()) {
      out.push_back(*value);
    } else {
      Note(*item, key, Message(value.status()));
    }
  }
  return out;
}

std::vector<int64_t> Fields::Integers(std::string_view key) {
  std::vector<int64_t> out;
  const YamlNode* list = List(key, false);
  if (list == nullptr) return out;
  for (const YamlPtr& item : list->items) {
    const auto value = IntegerOf(*item);
    if (value.ok()) {
      out.push_back(*value);
    } else {
      Note(*item, key, Message(value.status()));
    }
  }
  return out;
}

std::optional<std::pair<int, int>> Fields::ComputeCapability(std::string_view key) {
  const YamlNode* node = Get(key, true);
  if (node == nullptr) return std::nullopt;
  const std::string& text = node->text;
  const size_t point = text.find('.');
  if (node->IsScalar() && point != std::string::npos) {
    const auto major = SmallNumber(std::string_view(text).substr(0, point));
    const auto minor = SmallNumber(std::string_view(text).substr(point + 1));
    if (major && minor) return std::pair(*major, *minor);
  }
  Note(*node, key, "no compute capability; write it as \"8.6\"");
  return std::nullopt;
}

const YamlNode* Fields::List(std::string_view key, bool required) {
  const YamlNode* node = Get(key, required);
  if (node == nullptr || node->IsList()) return node;
  Note(*node, key, fmt::format("{} where a list is wanted", Describe(*node)));
  return nullptr;
}

const YamlNode* Fields::Map(std::string_view key, bool required) {
  const YamlNode* node = Get(key, required);
  if (node == nullptr || node->IsMap()) return node;
  Note(*node, key, fmt::format("{} where a map is wanted", Describe(*node)));
  return nullptr;
}

}  // namespace assay
