// Matrix: the file a user writes, checked and expanded to specs (docs/matrix.md). One
// implementation for `assay plan` in the CLI and for Submit in the coordinator.
//
// Thread rule: pure functions, any thread. Small memory whatever the text holds.
#ifndef ASSAY_COMMON_MATRIX_MATRIX_H_
#define ASSAY_COMMON_MATRIX_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/matrix/spec.h"

namespace assay {

// The largest matrix text that is read, from a file or from a message.
inline constexpr size_t kMaxMatrixBytes = size_t{1} << 20;
// Cells (specs times repeat, for one target) that need no consent.
inline constexpr uint64_t kMaxCellsUnasked = 10'000;
// Limits that no option lifts: points of the grid before exclusion, and specs after it.
inline constexpr uint64_t kMaxGridPoints = 1'000'000;
inline constexpr uint64_t kMaxSpecs = 100'000;
inline constexpr int64_t kMostPriority = 100;

enum class Placement { kPerCard, kPerNode, kPerGpu };
std::string_view PlacementName(Placement placement);  // per-card, per-node, per-gpu

struct Selection {
  bool all_cards = true;
  std::vector<std::string> cards;  // by the catalogue's names; empty with all_cards
  Placement placement = Placement::kPerCard;
  double wait_seconds = 60;
  bool include_late = false;     // `late: include`: targets that appear after `wait` get cells too
  double run_limit_seconds = 0;  // `run_limit`; 0: none
  int64_t priority = 0;          // of the run among others, -kMostPriority to kMostPriority

  // `card` is a name as IdentifyDevice gives it.
  bool Selects(std::string_view card) const;
};

struct MatrixOptions {
  bool allow_many = false;  // the user agreed to more than kMaxCellsUnasked
};

struct Matrix {
  std::string name;
  std::string baseline;  // card, by the catalogue's name; empty: the first row
  Selection select;
  int64_t repeat = 3;
  std::optional<uint64_t> seed;       // order of cells; drawn and recorded by the run where absent
  std::vector<Spec> specs;            // in the stated order; keys differ; index counts from 0
  std::vector<std::string> warnings;  // one line each: FILE: PATH: sentence

  uint64_t CellsPerTarget() const { return specs.size() * static_cast<uint64_t>(repeat); }
};

// InvalidArgument: the message holds up to 20 diagnostics, one a line, each
// `FILE:LINE:COL: PATH: what is wrong; remedy`.
absl::StatusOr<Matrix> ParseMatrix(std::string_view text, std::string_view file_name,
                                   const MatrixOptions& options);

// Text of a file, at most kMaxMatrixBytes; reading stops there. NotFound, PermissionDenied or
// InvalidArgument (too large, a directory), each with the path.
absl::StatusOr<std::string> ReadMatrixFile(const std::string& path);

// 16 hex digits over the canonical text of `spec`; does not read spec.key.
std::string SpecKey(const Spec& spec);
// What SpecKey hashes: sorted `name=value` lines, defaults left out.
std::string CanonicalSpecText(const Spec& spec);

// JSON Schema of the matrix file, for editors (docs/matrix.schema.json is this text).
std::string MatrixJsonSchema();

}  // namespace assay

#endif  // ASSAY_COMMON_MATRIX_MATRIX_H_
