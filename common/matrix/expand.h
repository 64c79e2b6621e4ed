// Expansion of blocks to specs. Private to common/matrix. Thread rule: pure function, any thread.
#ifndef ASSAY_COMMON_MATRIX_EXPAND_H_
#define ASSAY_COMMON_MATRIX_EXPAND_H_

#include <string>
#include <vector>

#include "common/matrix/block.h"
#include "common/matrix/matrix.h"
#include "common/yaml/diagnostics.h"

namespace assay {

// Appends the specs of all blocks to matrix->specs, numbers and keys them, and notes warnings.
// Counts before it expands. Order: blocks as written; in a block, axes as written, then zip groups,
// the last varying fastest.
void Expand(const std::vector<Block>& blocks, const MatrixOptions& options,
            Diagnostics* diagnostics, Matrix* matrix);

}  // namespace assay

#endif  // ASSAY_COMMON_MATRIX_EXPAND_H_
