#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "common/matrix/axis.h"
#include "common/matrix/axis_list.h"
#include "common/matrix/condition.h"
#include "common/matrix/matrix.h"
#include "common/matrix/settings.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

Json Texts(const std::vector<std::string_view>& words) {
  Json out = Json::array();
  for (const std::string_view word : words) out.push_back(std::string(word));
  return out;
}

Json Words(std::span<const std::string_view> words) {
  return {{"enum", Texts({words.begin(), words.end()})}};
}

Json Described(Json schema, std::string_view doc) {
  schema["description"] = std::string(doc);
  return schema;
}

Json Object(Json properties) {
  return {
      {"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
}

Json Whole(int64_t least, int64_t most) {
  return {{"type", "integer"}, {"minimum", least}, {"maximum", most}};
}

// One value of the axis.
Json ValueOf(const AxisInfo& info) {
  switch (info.kind) {
    case AxisKind::kWord:
      if (info.axis == Axis::kModel) {
        return {{"anyOf",
                 {Words(WordsOf(info.axis)),
                  {{"type", "string"}, {"pattern", "^own/[A-Za-z0-9._+-]{1,64}$"}}}}};
      }
      return Words(WordsOf(info.axis));
    case AxisKind::kName:
      return {{"type", "string"}, {"pattern", "^[A-Za-z0-9._+-]{1,64}$"}};
    case AxisKind::kInteger:
      return Whole(info.least, info.most);
    case AxisKind::kBatch:
      return {{"anyOf", {Whole(info.least, info.most), {{"const", "max"}}}}};
    case AxisKind::kImage:
      return {{"anyOf",
               {Whole(info.least, info.most),
                {{"type", "string"}, {"pattern", "^[1-9][0-9]{0,4}x[1-9][0-9]{0,4}$"}}}}};
  }
  return {};
}

Json Range(const AxisInfo& info) {
  Json range = Object({{"from", Whole(info.least, info.most)},
                       {"to", Whole(info.least, info.most)},
                       {"step", Whole(1, info.most)}});
  range["required"] = {"from", "to", "step"};
  Json doubling = Object({{"from", Whole(info.least, info.most)},
                          {"to", Whole(info.least, info.most)},
                          {"times", Whole(2, info.most)}});
  doubling["required"] = {"from", "to", "times"};
  return {{"anyOf", {range, doubling}}};
}

// What stands under `axes` or in a group of `zip`: a value, a range, or a list of both.
Json ListOf(const AxisInfo& info) {
  Json one = Json::array();
  one.push_back({{"$ref", fmt::format("#/$defs/{}", info.name)}});
  if (IsNumeric(info.kind)) one.push_back(Range(info));
  Json all = one;
  all.push_back({{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", one}}}});
  return {{"anyOf", all}};
}

Json ConditionOf(const AxisInfo& info) {
  const Json value = {{"$ref", fmt::format("#/$defs/{}", info.name)}};
  Json any = Json::array({value, {{"type", "array"}, {"minItems", 1}, {"items", value}}});
  if (IsNumeric(info.kind)) {
    Json bounds;
    for (const std::string_view key : BoundKeys()) {
      bounds[std::string(key)] = {{"type", "integer"}};
    }
    Json object = Object(bounds);
    object["minProperties"] = 1;
    any.push_back(object);
  }
  return {{"anyOf", any}};
}

Json NumbersOf(std::span<const NumberInfo> table) {
  Json properties;
  for (const NumberInfo& info : table) {
    properties[std::string(info.name)] = Described({{"type", "number"},
                                                    {"minimum", info.least},
                                                    {"maximum", info.most},
                                                    {"default", info.usual}},
                                                   info.doc);
  }
  return Object(properties);
}

Json ShortText() { return {{"type", "string"}, {"minLength", 1}, {"maxLength", kMaxTextBytes}}; }

Json Duration() {
  return {{"type", "string"}, {"pattern", "^(0|[1-9][0-9]*)([.][0-9]+)?(ms|s|m|h)$"}};
}

Json Select() {
  const Json schemas = {
      {"cards",
       {{"anyOf",
         {{{"const", "all"}}, {{"type", "array"}, {"minItems", 1}, {"items", ShortText()}}}}}},
      {"placement", Words(PlacementWords())},
      {"wait", Duration()},
      {"late", Words(LateWords())}};
  Json properties;
  for (const KeyInfo& key : SelectKeys()) {
    properties[std::string(key.name)] = Described(schemas.at(std::string(key.name)), key.doc);
  }
  return Object(properties);
}

Json Definitions() {
  Json axes, defaults, conditions, definitions;
  for (const AxisInfo& info : AllAxes()) {
    const std::string name(info.name);
    definitions[name] = Described(ValueOf(info), info.doc);
    conditions[name] = ConditionOf(info);
  }
  for (const AxisInfo& info : WrittenAxes()) {
    axes[std::string(info.name)] = Described(ListOf(info), info.doc);
    defaults[std::string(info.name)] = {{"$ref", fmt::format("#/$defs/{}", info.name)}};
  }
  definitions["axes"] = Object(axes);
  definitions["defaults"] = Object(defaults);
  Json rule = Object(conditions);
  rule["minProperties"] = 1;
  definitions["rules"] = {{"type", "array"}, {"maxItems", kMaxRules}, {"items", rule}};
  definitions["stop"] = NumbersOf(StopNumbers());
  definitions["limits"] = NumbersOf(LimitNumbers());
  definitions["select"] = Select();
  return definitions;
}

// The schema of one key of the file or of a block.
Json KeySchema(std::string_view key, const Json& block) {
  const auto ref = [](std::string_view name) -> Json {
    return {{"$ref", fmt::format("#/$defs/{}", name)}};
  };
  if (key == "exclude" || key == "include") return ref("rules");
  if (key == "zip") {
    return {{"type", "array"}, {"items", {{"$ref", "#/$defs/axes"}, {"minProperties", 1}}}};
  }
  if (key == "name" || key == "baseline") return ShortText();
  if (key == "repeat") {
    Json repeat = Whole(1, kMaxRepeat);
    repeat["default"] = Matrix{}.repeat;
    return repeat;
  }
  if (key == "run_limit") return Duration();
  if (key == "priority") {
    Json priority = Whole(-kMostPriority, kMostPriority);
    priority["default"] = Matrix{}.select.priority;
    return priority;
  }
  if (key == "seed") return {{"type", "integer"}, {"minimum", 0}};
  if (key == "matrices") {
    return {{"type", "object"}, {"minProperties", 1}, {"additionalProperties", block}};
  }
  return ref(key);
}

Json Properties(std::span<const KeyInfo> keys, const Json& block) {
  Json properties;
  for (const KeyInfo& key : keys) {
    properties[std::string(key.name)] = Described(KeySchema(key.name, block), key.doc);
  }
  return properties;
}

}  // namespace

std::string MatrixJsonSchema() {
  const Json block = Object(Properties(BlockKeys(), Json()));
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "Assay matrix"},
                 {"description",
                  "A benchmark matrix (docs/matrix.md). Made from the checker's own "
                  "tables: print it with `assay plan --schema`."}};
  const Json object = Object(Properties(TopKeys(), block));
  for (const auto& [key, value] : object.items()) schema[key] = value;
  schema["$defs"] = Definitions();
  return schema.dump(2) + "\n";
}

}  // namespace assay
