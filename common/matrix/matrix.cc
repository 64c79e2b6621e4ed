#include "common/matrix/matrix.h"

#include <fmt/format.h>

#include <utility>

#include "common/matrix/axis_list.h"
#include "common/matrix/block.h"
#include "common/matrix/expand.h"
#include "common/matrix/settings.h"
#include "common/yaml/diagnostics.h"
#include "common/yaml/scalars.h"
#include "common/yaml/yaml_tree.h"

namespace assay {
namespace {

constexpr size_t kMaxBlocks = 1'000;
// Of all axes of all blocks: a short text can hold many long ranges.
constexpr uint64_t kMaxValues = 100'000;

// "dir/cards-cnn.yaml" -> "cards-cnn".
std::string StemOf(std::string_view file_name) {
  const size_t slash = file_name.rfind('/');
  if (slash != std::string_view::npos) file_name.remove_prefix(slash + 1);
  const size_t dot = file_name.rfind('.');
  if (dot != std::string_view::npos && dot > 0) file_name = file_name.substr(0, dot);
  const std::string stem = Printable(file_name, kMaxTextBytes - 3);
  return stem.empty() ? "matrix" : stem;
}

void ReadHead(const YamlNode& root, Diagnostics* diagnostics, Matrix* matrix) {
  if (const YamlEntry* entry = root.Find("name")) {
    matrix->name = ReadShortText(*entry->value, "name", diagnostics);
  }
  if (const YamlEntry* entry = root.Find("baseline")) {
    matrix->baseline = ReadCard(*entry->value, "baseline", diagnostics, &matrix->warnings);
  }
  if (const YamlEntry* entry = root.Find("select")) {
    ReadSelect(*entry->value, "select", diagnostics, &matrix->select, &matrix->warnings);
  }
  if (const YamlEntry* entry = root.Find("run_limit")) {
    ReadRunLimit(*entry->value, "run_limit", diagnostics, &matrix->select);
  }
  if (const YamlEntry* entry = root.Find("priority")) {
    matrix->select.priority =
        ReadInteger(*entry->value, "priority", -kMostPriority, kMostPriority, 0, diagnostics);
  }
  if (const YamlEntry* entry = root.Find("repeat")) {
    matrix->repeat =
        ReadInteger(*entry->value, "repeat", 1, kMaxRepeat, matrix->repeat, diagnostics);
  }
  if (const YamlEntry* entry = root.Find("seed")) {
    const size_t before = diagnostics->size();
    const int64_t seed = ReadInteger(*entry->value, "seed", 0, INT64_MAX, 0, diagnostics);
    if (diagnostics->size() == before) matrix->seed = static_cast<uint64_t>(seed);
  }
}

std::vector<Block> ReadNamedBlocks(const YamlNode& root, const YamlNode& matrices,
                                   const BlockBase& base, Diagnostics* diagnostics) {
  std::vector<Block> blocks;
  for (const std::string_view key : {"axes", "zip", "include"}) {
    if (const YamlEntry* entry = root.Find(key)) {
      diagnostics->Add(entry->key_at, key, "stands beside matrices; move it into one of them");
    }
  }
  if (!matrices.IsMap()) {
    diagnostics->Add(matrices.at, "matrices",
                     fmt::format("{} where a map of named blocks is wanted", Describe(matrices)));
    return blocks;
  }
  if (matrices.entries.empty() || matrices.entries.size() > kMaxBlocks) {
    diagnostics->Add(matrices.at, "matrices",
                     fmt::format("{} blocks; write 1 to {}", matrices.entries.size(), kMaxBlocks));
    return blocks;
  }
  uint64_t values = 0;
  for (const YamlEntry& entry : matrices.entries) {
    if (diagnostics->full()) break;
    const std::string path = JoinPath("matrices", Printable(entry.key, kMaxTextBytes));
    if (entry.key.find_first_not_of(' ') == std::string::npos) {
      diagnostics->Add(entry.key_at, path, "a block without a name; give it one");
      continue;
    }
    if (!CheckKeys(*entry.value, path, NamesOf(BlockKeys()), diagnostics)) continue;
    BlockBase own = base;
    ReadBase(*entry.value, path, diagnostics, &own);
    blocks.push_back(ReadBlock(*entry.value, path, std::move(own), diagnostics));
    values += blocks.back().Values();
    if (values > kMaxValues) {
      diagnostics->Add(blocks.back().at, JoinPath(path, "axes"),
                       fmt::format("more than {} values up to here; split the file", kMaxValues));
      break;
    }
  }
  return blocks;
}

std::vector<Block> ReadBlocks(const YamlNode& root, Diagnostics* diagnostics) {
  BlockBase base = EmptyBase();
  ReadBase(root, "", diagnostics, &base);
  if (const YamlEntry* entry = root.Find("matrices")) {
    return ReadNamedBlocks(root, *entry->value, base, diagnostics);
  }
  std::vector<Block> blocks;
  blocks.push_back(ReadBlock(root, "", std::move(base), diagnostics));
  return blocks;
}

// A cell that is given up before it may stop could only ever end as timeout.
void CheckLimits(const std::vector<Block>& blocks, Diagnostics* diagnostics) {
  for (const Block& block : blocks) {
    const Spec& spec = block.base.spec;
    if (spec.limits.cell_seconds > spec.stop.min_seconds) continue;
    diagnostics->Add(block.base.limits_at, JoinPath(block.path, "limits.cell_seconds"),
                     fmt::format("{} is not above stop.min_seconds {}; raise it",
                                 spec.limits.cell_seconds, spec.stop.min_seconds));
  }
}

}  // namespace

absl::StatusOr<Matrix> ParseMatrix(std::string_view text, std::string_view file_name,
                                   const MatrixOptions& options) {
  Diagnostics diagnostics(file_name);
  YamlLimits limits;
  limits.bytes = kMaxMatrixBytes;
  const YamlPtr root = ParseYaml(text, limits, &diagnostics);
  if (root == nullptr) return diagnostics.ToStatus();
  if (root->IsNull()) {
    diagnostics.Add(root->at, "", "the file is empty; write at least `axes: {model: resnet50}`");
    return diagnostics.ToStatus();
  }
  if (!CheckKeys(*root, "", NamesOf(TopKeys()), &diagnostics)) return diagnostics.ToStatus();
  Matrix matrix;
  matrix.name = StemOf(file_name);
  ReadHead(*root, &diagnostics, &matrix);
  const std::vector<Block> blocks = ReadBlocks(*root, &diagnostics);
  if (diagnostics.empty()) CheckLimits(blocks, &diagnostics);
  if (diagnostics.empty()) Expand(blocks, options, &diagnostics, &matrix);
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  for (std::string& warning : matrix.warnings) {
    warning = fmt::format("{}: {}", Printable(file_name, 200), warning);
  }
  return matrix;
}

absl::StatusOr<std::string> ReadMatrixFile(const std::string& path) {
  return ReadTextFile(path, kMaxMatrixBytes);
}

}  // namespace assay
