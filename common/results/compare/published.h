// Figures that others published, as a CSV: to be compared among themselves, or with measured ones
// where that is asked for.
//
// Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_COMPARE_PUBLISHED_H_
#define ASSAY_COMMON_RESULTS_COMPARE_PUBLISHED_H_

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/results/compare/cells.h"

namespace assay::compare {

// The catalogue's name of a card, or the text itself where it has none.
using CardNames = std::function<std::string(const std::string&)>;

// Adds every line of `csv` to `cells`, or none: InvalidArgument names each line that does not fit.
// Columns card, gpus, nodes, stack, framework, model, mode, precision, lane, batch, metric, value,
// unit, power_watts, price_usd, source, date, in any order; all but card, model, metric, value and
// unit may be missing or empty. A value that is empty or zero is missing, and `mem_limit` and
// `fail` are outcomes. Only metric `throughput` is compared; latency, max_batch and memory_used are
// taken and left out. gpus and nodes are 1 where nothing is said, mode is train.
absl::Status AddPublished(std::string_view csv, std::string_view file_name, const CardNames& names,
                          Cells& cells);

}  // namespace assay::compare

#endif  // ASSAY_COMMON_RESULTS_COMPARE_PUBLISHED_H_
