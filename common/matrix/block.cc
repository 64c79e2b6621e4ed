#include "common/matrix/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/matrix/axis_list.h"
#include "common/matrix/settings.h"
#include "common/status/status.h"
#include "common/yaml/scalars.h"

namespace assay {
namespace {

std::vector<std::string_view> WrittenAxisNames() {
  std::vector<std::string_view> names;
  for (const AxisInfo& info : WrittenAxes()) names.push_back(info.name);
  return names;
}

void ReadDefaults(const YamlNode& node, const std::string& path, Diagnostics* diagnostics,
                  Spec* spec) {
  if (!CheckKeys(node, path, WrittenAxisNames(), diagnostics)) return;
  for (const AxisInfo& info : WrittenAxes()) {
    const YamlEntry* entry = node.Find(info.name);
    if (entry == nullptr) continue;
    const std::string at = JoinPath(path, info.name);
    const auto value = AxisValueFrom(*entry->value, info);
    if (value.ok()) {
      SetAxis(spec, info.axis, *value);
    } else {
      diagnostics->Add(entry->value->at, at, Message(value.status()));
    }
  }
}

class DimensionReader {
 public:
  DimensionReader(Diagnostics* diagnostics, std::vector<Dimension>* out)
      : diagnostics_(diagnostics), out_(out) {}

  void ReadAxes(const YamlNode& node, const std::string& path) {
    if (!CheckKeys(node, path, WrittenAxisNames(), diagnostics_)) return;
    for (const YamlEntry& entry : node.entries) {
      const AxisInfo* info = Claim(entry, path);
      if (info == nullptr) continue;
      Dimension dimension;
      dimension.axes = {info->axis};
      for (AxisValue& value :
           AxisListFrom(*entry.value, JoinPath(path, entry.key), *info, diagnostics_)) {
        dimension.points.push_back({std::move(value)});
      }
      out_->push_back(std::move(dimension));
    }
  }

  void ReadZip(const YamlNode& node, const std::string& path) {
    if (!node.IsList()) {
      diagnostics_->Add(node.at, path,
                        fmt::format("{} where a list of groups is wanted; write `- {{batch: [..], "
                                    "accumulate: [..]}}`",
                                    Describe(node)));
      return;
    }
    for (size_t i = 0; i < node.items.size() && !diagnostics_->full(); ++i) {
      ReadGroup(*node.items[i], fmt::format("{}[{}]", path, i));
    }
  }

 private:
  // Null, and noted, where the axis is not one or has been given before.
  const AxisInfo* Claim(const YamlEntry& entry, const std::string& path) {
    const AxisInfo* info = AxisByName(entry.key);
    if (info == nullptr || info->axis > Axis::kNodes) return nullptr;
    if (std::find(claimed_.begin(), claimed_.end(), info->axis) != claimed_.end()) {
      diagnostics_->Add(entry.key_at, JoinPath(path, entry.key),
                        "this axis is given twice in axes and zip; keep one of them");
      return nullptr;
    }
    claimed_.push_back(info->axis);
    return info;
  }

  void ReadGroup(const YamlNode& node, const std::string& path) {
    if (!CheckKeys(node, path, WrittenAxisNames(), diagnostics_)) return;
    const size_t before = diagnostics_->size();
    Dimension dimension;
    std::vector<std::vector<AxisValue>> columns;
    std::string lengths;
    for (const YamlEntry& entry : node.entries) {
      const AxisInfo* info = Claim(entry, path);
      if (info == nullptr) continue;
      dimension.axes.push_back(info->axis);
      columns.push_back(AxisListFrom(*entry.value, JoinPath(path, entry.key), *info, diagnostics_));
      lengths +=
          fmt::format("{}{} has {}", lengths.empty() ? "" : ", ", entry.key, columns.back().size());
    }
    if (diagnostics_->size() != before) return;
    if (columns.empty()) {
      diagnostics_->Add(node.at, path, "an empty group; name axes of equal length");
      return;
    }
    for (const auto& column : columns) {
      if (column.size() == columns[0].size()) continue;
      diagnostics_->Add(node.at, path,
                        fmt::format("lists of unequal length: {}; make them equal", lengths));
      return;
    }
    dimension.points.resize(columns[0].size());
    for (auto& column : columns) {
      for (size_t i = 0; i < column.size(); ++i) {
        dimension.points[i].push_back(std::move(column[i]));
      }
    }
    out_->push_back(std::move(dimension));
  }

  Diagnostics* const diagnostics_;
  std::vector<Dimension>* const out_;
  std::vector<Axis> claimed_;
};

// Notes a block in which nothing names the model.
void CheckModel(const Block& block, const YamlNode& map, Diagnostics* diagnostics) {
  const bool named =
      !block.base.spec.model.empty() ||
      std::any_of(block.dimensions.begin(), block.dimensions.end(), [](const Dimension& dimension) {
        return std::find(dimension.axes.begin(), dimension.axes.end(), Axis::kModel) !=
               dimension.axes.end();
      });
  if (named) return;
  const YamlEntry* axes = map.Find("axes");
  diagnostics->Add(
      axes != nullptr ? axes->key_at : map.at, JoinPath(block.path, "axes"),
      fmt::format("no model; name at least one of {}", fmt::join(WordsOf(Axis::kModel), ", ")));
}

}  // namespace

uint64_t Block::Values() const {
  uint64_t values = 0;
  for (const Dimension& dimension : dimensions) {
    values += dimension.points.size() * dimension.axes.size();
  }
  return values;
}

std::optional<uint64_t> Block::GridPoints(uint64_t most) const {
  uint64_t points = 1;
  for (const Dimension& dimension : dimensions) {
    const uint64_t size = dimension.points.size();
    if (size != 0 && points > most / size) return std::nullopt;
    points *= size;
  }
  return points;
}

BlockBase EmptyBase() {
  BlockBase base;
  base.spec.layout.clear();
  return base;
}

void ReadBase(const YamlNode& map, const std::string& path, Diagnostics* diagnostics,
              BlockBase* base) {
  if (const YamlEntry* entry = map.Find("defaults")) {
    ReadDefaults(*entry->value, JoinPath(path, "defaults"), diagnostics, &base->spec);
  }
  if (const YamlEntry* entry = map.Find("exclude")) {
    for (Rule& rule : RulesFrom(*entry->value, JoinPath(path, "exclude"), diagnostics)) {
      base->exclude.push_back(std::make_shared<const Rule>(std::move(rule)));
    }
  }
  if (const YamlEntry* entry = map.Find("stop")) {
    base->limits_at = entry->value->at;
    ReadStop(*entry->value, JoinPath(path, "stop"), diagnostics, &base->spec.stop);
  }
  if (const YamlEntry* entry = map.Find("limits")) {
    base->limits_at = entry->value->at;
    ReadLimits(*entry->value, JoinPath(path, "limits"), diagnostics, &base->spec.limits);
  }
  for (const Axis axis : {Axis::kThermal, Axis::kColocate, Axis::kData}) {
    const AxisInfo& info = InfoOf(axis);
    const YamlEntry* entry = map.Find(info.name);
    if (entry == nullptr) continue;
    const auto value = AxisValueFrom(*entry->value, info);
    if (value.ok()) {
      SetAxis(&base->spec, axis, *value);
    } else {
      diagnostics->Add(entry->value->at, JoinPath(path, info.name), Message(value.status()));
    }
  }
}

Block ReadBlock(const YamlNode& map, const std::string& path, BlockBase base,
                Diagnostics* diagnostics) {
  Block block;
  block.path = path;
  block.at = map.at;
  block.base = std::move(base);
  DimensionReader reader(diagnostics, &block.dimensions);
  if (const YamlEntry* entry = map.Find("axes")) {
    block.at = entry->key_at;
    reader.ReadAxes(*entry->value, JoinPath(path, "axes"));
  }
  if (const YamlEntry* entry = map.Find("zip")) {
    reader.ReadZip(*entry->value, JoinPath(path, "zip"));
  }
  if (const YamlEntry* entry = map.Find("include")) {
    const std::string at = JoinPath(path, "include");
    block.include = RulesFrom(*entry->value, at, diagnostics);
    if (entry->value->IsList() && entry->value->items.empty()) {
      diagnostics->Add(entry->value->at, at,
                       "an empty list leaves nothing to measure; name a condition or leave the "
                       "key out");
    }
  }
  // A misspelt `axes` or axis would only add a second diagnostic of the same fault.
  if (diagnostics->empty()) CheckModel(block, map, diagnostics);
  return block;
}

}  // namespace assay
