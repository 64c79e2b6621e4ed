#include "common/matrix/condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/matrix/axis_list.h"
#include "common/status/status.h"
#include "common/yaml/scalars.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 4> kBoundKeys = {"above", "below", "from", "to"};

void ReadBounds(const YamlNode& node, const std::string& path, const AxisInfo& info,
                Diagnostics* diagnostics, Condition* condition) {
  if (!IsNumeric(info.kind)) {
    diagnostics->Add(node.at, path,
                     fmt::format("bounds are for numbers; name values of {}", info.name));
    return;
  }
  CheckKeys(node, path, kBoundKeys, diagnostics);
  if (node.entries.empty()) {
    diagnostics->Add(node.at, path, "an empty condition; write above, below, from or to");
  }
  for (const auto& [key, slot] :
       {std::pair<std::string_view, std::optional<int64_t>*>("above", &condition->above),
        {"below", &condition->below},
        {"from", &condition->from},
        {"to", &condition->to}}) {
    const YamlEntry* entry = node.Find(key);
    if (entry == nullptr) continue;
    const auto value = IntegerOf(*entry->value);
    if (value.ok()) {
      *slot = *value;
    } else {
      diagnostics->Add(entry->value->at, JoinPath(path, key), Message(value.status()));
    }
  }
}

void ReadValue(const YamlNode& node, const std::string& path, const AxisInfo& info,
               Diagnostics* diagnostics, Condition* condition) {
  auto value = AxisValueFrom(node, info);
  if (value.ok()) {
    condition->any_of.push_back(*std::move(value));
  } else {
    diagnostics->Add(node.at, path, Message(value.status()));
  }
}

Condition ConditionFrom(const YamlNode& node, const std::string& path, const AxisInfo& info,
                        Diagnostics* diagnostics) {
  Condition condition;
  condition.axis = info.axis;
  if (node.IsMap()) {
    ReadBounds(node, path, info, diagnostics, &condition);
  } else if (node.IsList()) {
    if (node.items.empty()) diagnostics->Add(node.at, path, "an empty list; name a value");
    for (size_t i = 0; i < node.items.size() && !diagnostics->full(); ++i) {
      ReadValue(*node.items[i], fmt::format("{}[{}]", path, i), info, diagnostics, &condition);
    }
  } else {
    ReadValue(node, path, info, diagnostics, &condition);
  }
  return condition;
}

Rule RuleFrom(const YamlNode& node, const std::string& path, Diagnostics* diagnostics) {
  Rule rule;
  rule.at = node.at;
  rule.path = path;
  std::vector<std::string_view> known;
  for (const AxisInfo& info : AllAxes()) known.push_back(info.name);
  if (!CheckKeys(node, path, known, diagnostics)) return rule;
  if (node.entries.empty()) diagnostics->Add(node.at, path, "an empty entry; name a field");
  for (const YamlEntry& entry : node.entries) {
    const AxisInfo* info = AxisByName(entry.key);
    if (info == nullptr) continue;
    rule.conditions.push_back(
        ConditionFrom(*entry.value, JoinPath(path, entry.key), *info, diagnostics));
  }
  return rule;
}

}  // namespace

bool Condition::Holds(const Spec& spec) const {
  const AxisValue value = GetAxis(spec, axis);
  if (!any_of.empty()) return std::find(any_of.begin(), any_of.end(), value) != any_of.end();
  if (value.text == "max") return false;
  return (!above || value.number > *above) && (!below || value.number < *below) &&
         (!from || value.number >= *from) && (!to || value.number <= *to);
}

bool Rule::Holds(const Spec& spec) const {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const Condition& condition) { return condition.Holds(spec); });
}

std::span<const std::string_view> BoundKeys() { return kBoundKeys; }

std::vector<Rule> RulesFrom(const YamlNode& node, const std::string& path,
                            Diagnostics* diagnostics) {
  std::vector<Rule> rules;
  if (!node.IsList()) {
    diagnostics->Add(
        node.at, path,
        fmt::format("{} where a list of conditions is wanted; write `- {{model: ...}}`",
                    Describe(node)));
    return rules;
  }
  if (node.items.size() > kMaxRules) {
    diagnostics->Add(node.at, path,
                     fmt::format("has more than {} entries; use lists of values "
                                 "and bounds",
                                 kMaxRules));
    return rules;
  }
  for (size_t i = 0; i < node.items.size() && !diagnostics->full(); ++i) {
    rules.push_back(RuleFrom(*node.items[i], fmt::format("{}[{}]", path, i), diagnostics));
  }
  return rules;
}

}  // namespace assay
