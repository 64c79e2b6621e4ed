// ChildRunner: one cell in a fresh process of this same program, for a runner that needs several
// (largest_batch_cell.h). The child has a lifeline to this process, so that it ends when this one
// does, however that ends; it is in the same process group, where the agent's signals reach it.
#ifndef ASSAY_RUNNERS_COMMON_CHILD_RUNNER_H_
#define ASSAY_RUNNERS_COMMON_CHILD_RUNNER_H_

#include <functional>
#include <optional>
#include <string>

#include "common/runner_protocol/cell_file.h"
#include "common/runner_protocol/record_parser.h"

namespace assay {

struct ChildEnd {
  std::optional<record::Result> result;  // absent: it ended without one
  std::string problem;                   // then one sentence of how it ended
};

// Everything but the result, as it comes.
using OnChildRecord = std::function<void(const record::Parsed&)>;
using RunChild = std::function<ChildEnd(const CellFile&, const OnChildRecord&)>;

// Starts `program` and returns when it is gone. Its standard output goes to this process's standard
// error, where records cannot be mistaken for it. `lifeline_seconds`: of the child's lifeline,
// above 0. Throws std::runtime_error where no process can be started. Thread rule: one at a time.
ChildEnd RunChildProcess(const std::string& program, double lifeline_seconds, const CellFile& cell,
                         const OnChildRecord& on_record);

}  // namespace assay

#endif  // ASSAY_RUNNERS_COMMON_CHILD_RUNNER_H_
