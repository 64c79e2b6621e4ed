// The cells that the conformance checks give to a runner: small ones, and what is wrong with them.
//
// Thread rule: pure functions, any thread.
#ifndef ASSAY_AGENT_CONFORMANCE_TRIAL_CELLS_H_
#define ASSAY_AGENT_CONFORMANCE_TRIAL_CELLS_H_

#include <string>
#include <utility>
#include <vector>

#include "common/fleet/inventory.h"
#include "common/results/record.h"
#include "common/runner_protocol/cell_file.h"

namespace assay {

// The smallest cell that `stack` says it can run on `device`: two samples, half a second. Takes
// resnet50 at 64x64, fp32, training, lane eager and contiguous where the stack has them, else the
// first it lists.
CellFile SmallCell(const Stack& stack, const Device& device, const std::string& card);
// The same without an end of its own for half a minute.
CellFile LongCell(CellFile cell);

// `cell` with keys in every object that no version of the protocol has.
std::string WithUnknownKeys(const CellFile& cell);

// What is wrong, and the text of a cell file that is so: each is exit code 2.
std::vector<std::pair<std::string, std::string>> WrongCells(const CellFile& cell);

// The plan's part of a result of `cell`, for the rules.
Record PlanFields(const CellFile& cell);

}  // namespace assay

#endif  // ASSAY_AGENT_CONFORMANCE_TRIAL_CELLS_H_
