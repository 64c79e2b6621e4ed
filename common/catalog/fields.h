// Reads the maps of a catalogue: each call takes one key and notes what is wrong with it. Private
// to the catalogues. Thread rule: one thread.
#ifndef ASSAY_COMMON_CATALOG_FIELDS_H_
#define ASSAY_COMMON_CATALOG_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/yaml/diagnostics.h"
#include "common/yaml/yaml_tree.h"

namespace assay {

class Fields {
 public:
  // Both outlive this. Notes a node that is no map, and every key outside `known`.
  Fields(const YamlNode& node, std::string path, std::vector<std::string_view> known,
         Diagnostics* diagnostics);

  std::string Text(std::string_view key, bool required);
  std::optional<int64_t> Integer(std::string_view key, bool required);
  std::optional<double> Number(std::string_view key);
  std::optional<bool> Flag(std::string_view key);
  std::vector<std::string> Texts(std::string_view key, bool required);
  std::vector<int64_t> Integers(std::string_view key);
  // "8.6" as (8, 6).
  std::optional<std::pair<int, int>> ComputeCapability(std::string_view key);
  // Null where it is absent or of another kind; both are noted where required.
  const YamlNode* List(std::string_view key, bool required);
  const YamlNode* Map(std::string_view key, bool required);

  std::string PathOf(std::string_view key) const;
  void Note(const YamlNode& at, std::string_view key, std::string_view what);

 private:
  const YamlNode* Get(std::string_view key, bool required);

  const YamlNode& node_;
  const std::string path_;
  Diagnostics* const diagnostics_;
};

}  // namespace assay

#endif  // ASSAY_COMMON_CATALOG_FIELDS_H_
