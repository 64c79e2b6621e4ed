// Slice: one of n parts of a matrix, for n jobs that share no network (`assay run --slice i/n`).
//
// Each job runs the specs whose index modulo n is i - 1, on its own coordinator, and numbers its
// cells i, i + n, i + 2n, ...: no two jobs use one number, whatever targets they find. All of them
// know the id of their common run without asking, since it is made of what they share. So `assay
// merge` of their files is one run, and keys are those of the whole matrix. Pure; any thread.
#ifndef ASSAY_COMMON_MATRIX_SLICE_H_
#define ASSAY_COMMON_MATRIX_SLICE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

inline constexpr uint32_t kMaxSlices = 10'000;

struct Slice {
  uint32_t index = 0;  // from 1
  uint32_t count = 0;  // 0: the whole matrix
  // Tells one run of all slices from the next; the same in all its jobs. [A-Za-z0-9_.-]{0,64}
  std::string id;

  bool IsWhole() const { return count == 0; }
  bool Has(uint32_t spec_index) const { return IsWhole() || spec_index % count == index - 1; }
  // The number of the cell behind number `last`; of the first for 0.
  uint64_t NextCell(uint64_t last) const {
    if (last == 0) return IsWhole() ? 1 : index;
    return last + (IsWhole() ? 1 : count);
  }
  // "2/4"; empty for the whole.
  std::string ToString() const;
  friend bool operator==(const Slice&, const Slice&) = default;
};

// Of "2/4" and an id. InvalidArgument with one sentence.
absl::StatusOr<Slice> ParseSlice(std::string_view text, std::string_view id);
// The same for numbers of a peer or a file.
absl::Status CheckSlice(const Slice& slice);

// The id of the run that the slices of a matrix have in common: in the form of a ULID, though not
// by time. `digest` is the SHA-256 of the matrix text.
std::string SlicedRunId(std::string_view digest, const Slice& slice);

}  // namespace assay

#endif  // ASSAY_COMMON_MATRIX_SLICE_H_
