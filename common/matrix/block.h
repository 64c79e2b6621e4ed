// Block: one grid of the matrix, checked but not expanded: the file itself, or an entry of
// `matrices`. Private to common/matrix. Thread rule: pure functions, any thread.
#ifndef ASSAY_COMMON_MATRIX_BLOCK_H_
#define ASSAY_COMMON_MATRIX_BLOCK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/matrix/axis.h"
#include "common/matrix/condition.h"
#include "common/matrix/spec.h"
#include "common/yaml/diagnostics.h"
#include "common/yaml/yaml_tree.h"

namespace assay {

// Axes that advance together: one axis, or a group of `zip`. points[i][j]: value of axes[j].
struct Dimension {
  std::vector<Axis> axes;
  std::vector<std::vector<AxisValue>> points;
};

// What blocks have in common: defaults, exclusions and settings of the file.
struct BlockBase {
  Spec spec;  // layout and image empty where nobody named them
  std::vector<std::shared_ptr<const Rule>> exclude;  // shared by all blocks of a file
  Position limits_at;                                // of the last `stop` or `limits` that was read
};

struct Block {
  std::string path;  // "" for the file, "matrices.NAME"
  Position at;
  BlockBase base;
  std::vector<Dimension> dimensions;  // first slowest, last fastest
  std::optional<std::vector<Rule>> include;

  // Values held, over all axes.
  uint64_t Values() const;
  // Points of the grid, or nothing where they exceed `most`. Never overflows.
  std::optional<uint64_t> GridPoints(uint64_t most) const;
};

// The base with no file: every axis at its default.
BlockBase EmptyBase();

// Reads defaults, exclude, stop, limits, thermal, colocate and data of the map over `base`.
void ReadBase(const YamlNode& map, const std::string& path, Diagnostics* diagnostics,
              BlockBase* base);

// Reads axes, zip and include; keys are checked by the caller.
Block ReadBlock(const YamlNode& map, const std::string& path, BlockBase base,
                Diagnostics* diagnostics);

}  // namespace assay

#endif  // ASSAY_COMMON_MATRIX_BLOCK_H_
