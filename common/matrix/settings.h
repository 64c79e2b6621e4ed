// Settings: what stands beside the axes: stop, limits, select, repeat, words of a block.
// Tables of keys, from which the checker and the JSON Schema are made.
// Private to common/matrix. Thread rule: pure functions, any thread.
#ifndef ASSAY_COMMON_MATRIX_SETTINGS_H_
#define ASSAY_COMMON_MATRIX_SETTINGS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/matrix/matrix.h"
#include "common/matrix/spec.h"
#include "common/yaml/diagnostics.h"
#include "common/yaml/yaml_tree.h"

namespace assay {

struct KeyInfo {
  std::string_view name;
  std::string_view doc;
};

// A number of `stop` or `limits`, with its bounds, both allowed.
struct NumberInfo {
  std::string_view name;
  double least;
  double most;
  double usual;
  std::string_view doc;
};

inline constexpr int64_t kMaxRepeat = 1'000;
inline constexpr size_t kMaxTextBytes = 100;  // of name, baseline and a card

std::span<const KeyInfo> TopKeys();     // of the file
std::span<const KeyInfo> BlockKeys();   // of an entry of `matrices`
std::span<const KeyInfo> SharedKeys();  // of the file beside `matrices`, for all its entries
std::span<const KeyInfo> SelectKeys();
std::span<const NumberInfo> StopNumbers();
std::span<const NumberInfo> LimitNumbers();
std::span<const std::string_view> PlacementWords();
std::span<const std::string_view> LateWords();
std::vector<std::string_view> NamesOf(std::span<const KeyInfo> keys);

// Each reads `node` over what `out` holds already; faults go to `diagnostics`.
void ReadStop(const YamlNode& node, const std::string& path, Diagnostics* diagnostics,
              StopRule* out);
void ReadLimits(const YamlNode& node, const std::string& path, Diagnostics* diagnostics,
                Limits* out);
// Notes in `warnings`, with no position, what is odd but allowed.
void ReadSelect(const YamlNode& node, const std::string& path, Diagnostics* diagnostics,
                Selection* out, std::vector<std::string>* warnings);

void ReadRunLimit(const YamlNode& node, const std::string& path, Diagnostics* diagnostics,
                  Selection* out);

// Text of 1 to kMaxTextBytes bytes, else noted and empty.
std::string ReadShortText(const YamlNode& node, const std::string& path, Diagnostics* diagnostics);

// An integer within bounds, else noted and `otherwise`.
int64_t ReadInteger(const YamlNode& node, const std::string& path, int64_t least, int64_t most,
                    int64_t otherwise, Diagnostics* diagnostics);

// The catalogue's name of one card, for `baseline`: a name of two products is a fault.
std::string ReadCard(const YamlNode& node, const std::string& path, Diagnostics* diagnostics,
                     std::vector<std::string>* warnings);

}  // namespace assay

#endif  // ASSAY_COMMON_MATRIX_SETTINGS_H_
