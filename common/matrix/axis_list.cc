#include "common/matrix/axis_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "common/status/status.h"
#include "common/yaml/scalars.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 4> kRangeKeys = {"from", "to", "step", "times"};

// One bound of a range; notes what is wrong.
std::optional<int64_t> Bound(const YamlNode& range, std::string_view key, const std::string& path,
                             int64_t least, int64_t most, Diagnostics* diagnostics) {
  const YamlEntry* entry = range.Find(key);
  const std::string at = JoinPath(path, key);
  if (entry == nullptr) {
    diagnostics->Add(range.at, at,
                     "this key is missing; a range is {from, to, step}, a doubling "
                     "{from, to, times}");
    return std::nullopt;
  }
  const auto value = IntegerOf(*entry->value);
  if (!value.ok()) {
    diagnostics->Add(entry->value->at, at, Message(value.status()));
    return std::nullopt;
  }
  if (*value < least || *value > most) {
    diagnostics->Add(entry->value->at, at,
                     fmt::format("{} is outside {} to {}", *value, least, most));
    return std::nullopt;
  }
  return *value;
}

void AppendRange(const YamlNode& node, const std::string& path, const AxisInfo& info,
                 Diagnostics* diagnostics, std::vector<AxisValue>* values) {
  if (!IsNumeric(info.kind)) {
    diagnostics->Add(node.at, path,
                     fmt::format("a map where a value of {} is wanted; ranges are "
                                 "for numbers",
                                 info.name));
    return;
  }
  const size_t before = diagnostics->size();
  if (!CheckKeys(node, path, kRangeKeys, diagnostics) || diagnostics->size() != before) return;
  const bool doubling = node.Find("times") != nullptr;
  if (doubling && node.Find("step") != nullptr) {
    diagnostics->Add(node.at, path, "has both step and times; keep one of them");
    return;
  }
  const auto from = Bound(node, "from", path, info.least, info.most, diagnostics);
  const auto to = Bound(node, "to", path, info.least, info.most, diagnostics);
  const auto by =
      Bound(node, doubling ? "times" : "step", path, doubling ? 2 : 1, info.most, diagnostics);
  if (!from || !to || !by) return;
  if (*to < *from) {
    diagnostics->Add(node.at, path, fmt::format("runs from {} down to {}; swap them", *from, *to));
    return;
  }
  if (!doubling && (*to - *from) / *by >= kMaxAxisValues) {
    diagnostics->Add(node.at, path,
                     fmt::format("is a range of {} values, more than {}; take a larger step",
                                 (*to - *from) / *by + 1, kMaxAxisValues));
    return;
  }
  // Bounds are at most 1e9, so neither a sum nor a product of two overflows.
  for (int64_t value = *from; value <= *to; value = doubling ? value * *by : value + *by) {
    values->push_back({fmt::format("{}", value), value});
  }
}

void AppendOne(const YamlNode& node, const std::string& path, const AxisInfo& info,
               Diagnostics* diagnostics, std::vector<AxisValue>* values) {
  if (node.IsMap()) return AppendRange(node, path, info, diagnostics, values);
  auto value = AxisValueFrom(node, info);
  if (!value.ok()) {
    diagnostics->Add(node.at, path, Message(value.status()));
    return;
  }
  values->push_back(*std::move(value));
}

}  // namespace

bool CheckKeys(const YamlNode& node, const std::string& path,
               std::span<const std::string_view> known, Diagnostics* diagnostics) {
  if (!node.IsMap()) {
    diagnostics->Add(node.at, path,
                     fmt::format("{} where a map is wanted; write `key: value`", Describe(node)));
    return false;
  }
  for (const YamlEntry& entry : node.entries) {
    if (diagnostics->full()) break;
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    diagnostics->Add(entry.key_at, JoinPath(path, entry.key),
                     fmt::format("unknown key{}", Suggestion(entry.key, known)));
  }
  return true;
}

std::vector<AxisValue> AxisListFrom(const YamlNode& node, const std::string& path,
                                    const AxisInfo& info, Diagnostics* diagnostics) {
  std::vector<AxisValue> values;
  if (!node.IsList()) {
    AppendOne(node, path, info, diagnostics, &values);
    return values;
  }
  if (node.items.empty()) {
    diagnostics->Add(node.at, path, "an empty list; name a value or leave the key out");
  }
  for (size_t i = 0; i < node.items.size() && !diagnostics->full(); ++i) {
    AppendOne(*node.items[i], fmt::format("{}[{}]", path, i), info, diagnostics, &values);
    if (values.size() > static_cast<size_t>(kMaxAxisValues)) {
      diagnostics->Add(node.at, path, fmt::format("has more than {} values", kMaxAxisValues));
      break;
    }
  }
  return values;
}

}  // namespace assay
