#include "common/catalog/workload_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/catalog/builtin_text.h"
#include "common/catalog/fields.h"
#include "common/status/status.h"
#include "common/yaml/diagnostics.h"
#include "common/yaml/scalars.h"
#include "common/yaml/yaml_tree.h"

namespace assay {

namespace {

constexpr int64_t kMostImageSide = 65536;

// Notes every value that is not in `known`.
void CheckWords(Fields* fields, const YamlNode& node, std::string_view key,
                const std::vector<std::string>& values, const std::vector<std::string>& known) {
  for (const std::string& value : values) {
    if (std::find(known.begin(), known.end(), value) == known.end()) {
      fields->Note(node, key, fmt::format("'{}' is not listed at the top", value));
    }
  }
}

std::optional<MemoryLine> MemoryLineFrom(const YamlNode& node) {
  if (!node.IsList() || node.items.size() != 2) return std::nullopt;
  const auto fixed = NumberOf(*node.items[0]);
  const auto per_sample = NumberOf(*node.items[1]);
  if (!fixed.ok() || !per_sample.ok() || *fixed < 0 || *per_sample < 0) return std::nullopt;
  return MemoryLine{*fixed, *per_sample};
}

void ReadMemory(Fields* fields, Workload* workload) {
  const YamlNode* memory = fields->Map("memory", !workload->IsPeak());
  if (memory == nullptr) return;
  for (const YamlEntry& precision : memory->entries) {
    for (const YamlEntry& mode : precision.value->entries) {
      const auto line = MemoryLineFrom(*mode.value);
      if (line) {
        workload->memory[{precision.key, mode.key}] = *line;
      } else {
        fields->Note(*mode.value, "memory", "no pair [fixed bytes, bytes per sample]");
      }
    }
  }
}

Workload WorkloadFrom(const YamlNode& node, const std::string& path, Diagnostics* diagnostics) {
  Fields fields(node, path,
                {"name", "title", "sample_unit", "image", "parameters", "flops_per_sample", "modes",
                 "lanes", "precisions", "layouts", "memory"},
                diagnostics);
  Workload workload;
  workload.name = fields.Text("name", true);
  workload.title = fields.Text("title", true);
  workload.sample_unit = fields.Text("sample_unit", true);
  workload.default_image = fields.Text("image", false);
  workload.parameters = fields.Integer("parameters", true).value_or(0);
  workload.modes = fields.Texts("modes", true);
  if (const YamlNode* flops = fields.Map("flops_per_sample", !workload.IsPeak())) {
    Fields modes(*flops, fields.PathOf("flops_per_sample"), {"train", "infer"}, diagnostics);
    workload.train_flops_per_sample = modes.Number("train").value_or(0);
    workload.infer_flops_per_sample = modes.Number("infer").value_or(0);
  }
  workload.lanes = fields.Texts("lanes", true);
  workload.precisions = fields.Texts("precisions", true);
  workload.layouts = fields.Texts("layouts", true);
  if (workload.layouts.empty()) fields.Note(node, "layouts", "has no default");
  if (!workload.default_image.empty() && !ParseImageSize(workload.default_image)) {
    fields.Note(node, "image", "is no HEIGHTxWIDTH");
  }
  ReadMemory(&fields, &workload);
  return workload;
}

}  // namespace

std::optional<std::pair<int64_t, int64_t>> ParseImageSize(std::string_view image) {
  const size_t x = image.find('x');
  if (x == std::string_view::npos) return std::nullopt;
  const auto side = [](std::string_view text) -> int64_t {
    int64_t value = 0;
    if (text.empty() || text[0] < '1' || text[0] > '9') return 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole && value <= kMostImageSide ? value : 0;
  };
  const int64_t height = side(image.substr(0, x));
  const int64_t width = side(image.substr(x + 1));
  if (height == 0 || width == 0) return std::nullopt;
  return std::pair(height, width);
}

bool Workload::IsPeak() const { return modes == std::vector<std::string>{"peak"}; }

std::optional<double> Workload::MemoryEstimateBytes(std::string_view precision,
                                                    std::string_view mode, std::string_view image,
                                                    int64_t micro_batch) const {
  const auto line = memory.find({std::string(precision), std::string(mode)});
  if (line == memory.end()) return std::nullopt;
  double area = 1;
  const auto wanted = ParseImageSize(image);
  const auto usual = ParseImageSize(default_image);
  if (wanted && usual) {
    area = static_cast<double>(wanted->first) * static_cast<double>(wanted->second) /
           (static_cast<double>(usual->first) * static_cast<double>(usual->second));
  }
  return line->second.fixed_bytes +
         line->second.per_sample_bytes * area * static_cast<double>(micro_batch);
}

absl::StatusOr<WorkloadCatalog> WorkloadCatalog::Parse(std::string_view yaml,
                                                       std::string_view file_name) {
  Diagnostics diagnostics(file_name);
  const YamlPtr root = ParseYaml(yaml, YamlLimits{}, &diagnostics);
  if (root == nullptr) return diagnostics.ToStatus();
  WorkloadCatalog catalog;
  Fields fields(*root, "", {"schema", "modes", "lanes", "layouts", "precisions", "workloads"},
                &diagnostics);
  catalog.modes_ = fields.Texts("modes", true);
  catalog.lanes_ = fields.Texts("lanes", true);
  catalog.layouts_ = fields.Texts("layouts", true);
  std::vector<std::string> precisions;
  if (const YamlNode* list = fields.List("precisions", true)) {
    for (size_t i = 0; i < list->items.size(); ++i) {
      Fields precision(*list->items[i], fmt::format("precisions[{}]", i), {"name", "cc", "cpu"},
                       &diagnostics);
      PrecisionFacts facts;
      facts.name = precision.Text("name", true);
      const auto cc = precision.ComputeCapability("cc").value_or(std::pair(0, 0));
      facts.cc_major = cc.first;
      facts.cc_minor = cc.second;
      facts.on_cpu = precision.Flag("cpu").value_or(false);
      precisions.push_back(facts.name);
      catalog.precisions_.push_back(std::move(facts));
    }
  }
  if (const YamlNode* list = fields.List("workloads", true)) {
    for (size_t i = 0; i < list->items.size(); ++i) {
      const YamlNode& node = *list->items[i];
      Workload workload = WorkloadFrom(node, fmt::format("workloads[{}]", i), &diagnostics);
      CheckWords(&fields, node, workload.name, workload.modes, catalog.modes_);
      CheckWords(&fields, node, workload.name, workload.lanes, catalog.lanes_);
      CheckWords(&fields, node, workload.name, workload.layouts, catalog.layouts_);
      CheckWords(&fields, node, workload.name, workload.precisions, precisions);
      if (catalog.Find(workload.name) != nullptr) {
        fields.Note(node, workload.name, "this model is listed twice");
      }
      catalog.workloads_.push_back(std::move(workload));
    }
  }
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  return catalog;
}

const Workload* WorkloadCatalog::Find(std::string_view name) const {
  for (const Workload& workload : workloads_) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

const PrecisionFacts* WorkloadCatalog::FindPrecision(std::string_view name) const {
  for (const PrecisionFacts& precision : precisions_) {
    if (precision.name == name) return &precision;
  }
  return nullptr;
}

const WorkloadCatalog& BuiltinWorkloads() {
  // Checked by a test; a fault leaves an empty catalogue rather than ending the process.
  static const WorkloadCatalog* const catalog = [] {
    auto parsed = WorkloadCatalog::Parse(kWorkloadsYaml, "workloads.yaml");
    return new WorkloadCatalog(parsed.ok() ? *std::move(parsed) : WorkloadCatalog());
  }();
  return *catalog;
}

}  // namespace assay
