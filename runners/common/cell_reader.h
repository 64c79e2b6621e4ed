// Reading and checking a cell file. Everything here throws BadInput with one sentence that names
// the place and what to do; no input may crash the runner.
#ifndef ASSAY_RUNNERS_COMMON_CELL_READER_H_
#define ASSAY_RUNNERS_COMMON_CELL_READER_H_

#include <string>

#include "common/runner_protocol/cell_file.h"
#include "common/version.h"  // kRunnerProtocol

namespace assay {

// A cell file is some 2 KiB; more is a mistake.
inline constexpr size_t kMaxCellFileBytes = 1 << 20;

// Reads `path` ("-": standard input) to its end and parses it.
CellFile ReadCellFile(const std::string& path);

// `name` is the file's name for messages. Checks what holds for every runner: protocol number,
// ranks, batch, accumulate dividing batch, a stopping rule with finite, positive seconds. Whether
// a model or precision is known is each runner's own answer (`unsupported`).
CellFile ParseCellFile(const std::string& text, const std::string& name);

}  // namespace assay

#endif  // ASSAY_RUNNERS_COMMON_CELL_READER_H_
