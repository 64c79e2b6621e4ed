// YamlNode: a YAML text as a located tree, built from yaml-cpp's events under budgets.
//
// Unlike YAML::Node it keeps positions and quotes, refuses duplicate keys, second documents, tags
// and self-reference, and needs small memory whatever the text holds. Thread rule: a tree is
// immutable.
#ifndef ASSAY_COMMON_YAML_YAML_TREE_H_
#define ASSAY_COMMON_YAML_YAML_TREE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/yaml/diagnostics.h"

namespace assay {

struct YamlNode;
using YamlPtr = std::shared_ptr<const YamlNode>;  // never null; an alias shares its anchor's node

struct YamlEntry {
  std::string key;  // "null" where the file has a null
  Position key_at;
  YamlPtr value;
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  bool quoted = false;  // of a scalar: 'x', "x" or a block
  Position at;
  std::string text;                // of a scalar, as written
  std::vector<YamlPtr> items;      // of a list
  std::vector<YamlEntry> entries;  // of a map, in the order written; keys differ
  size_t weight = 1;               // nodes in it, aliases counted as often as used
  int height = 1;                  // levels in it

  bool IsMap() const { return kind == Kind::kMap; }
  bool IsList() const { return kind == Kind::kList; }
  bool IsScalar() const { return kind == Kind::kScalar; }
  bool IsNull() const { return kind == Kind::kNull; }
  // Null where it is no map or has no such key.
  const YamlEntry* Find(std::string_view key) const;
};

struct YamlLimits {
  size_t bytes = size_t{1} << 20;
  // yaml-cpp's scanner holds the tokens of a whole line: this bounds them.
  size_t line_bytes = size_t{32} << 10;
  size_t nodes = 100'000;
  int depth = 64;
};

// Null where the text is refused; the reasons are then in `diagnostics`.
YamlPtr ParseYaml(std::string_view text, const YamlLimits& limits, Diagnostics* diagnostics);

// The file's text, where it has at most `most_bytes`: no more than one byte beyond is ever read.
// NotFound, PermissionDenied, InvalidArgument (too large, not a file), each with the path.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t most_bytes);

}  // namespace assay

#endif  // ASSAY_COMMON_YAML_YAML_TREE_H_
