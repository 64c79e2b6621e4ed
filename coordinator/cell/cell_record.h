// The record of a cell: what `assay results` prints for it, complete with the fields of plan and
// cell. Pure; any thread.
#ifndef ASSAY_COORDINATOR_CELL_CELL_RECORD_H_
#define ASSAY_COORDINATOR_CELL_CELL_RECORD_H_

#include <cstdint>
#include <string>

#include "common/results/record.h"
#include "coordinator/cell/rows.h"

namespace assay {

// Fields of source plan and cell, outcome and reason of the cell, and every field of
// `counted->record` (null: no attempt is counted; cells that are unsupported, cancelled or not
// ended). The outcome is not known while the cell has none.
Record CellRecord(const RunRow& run, const Spec& spec, const CellRow& cell,
                  const AttemptRow* counted);

// "resnet50 train amp-fp16 b64 eager on RTX 3090"; axes that are at their default are left out.
std::string CellLabel(const Spec& spec, const CellRow& cell);

// "2026-01-01T00:00:00.000Z"; empty for 0.
std::string IsoTime(int64_t unix_ms);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_CELL_CELL_RECORD_H_
