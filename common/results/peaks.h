// Peaks: the measured ceilings of cards, out of cells of mode `peak`, and how near other cells come
// to them (docs/adr/0005-utilisation.md).
//
// A cell is held against ceilings of its own card and CUDA version: another cuBLAS may have a lower
// ceiling, above which a sound cell would lie. Of several cells of one ceiling the highest counts;
// of colocated ones a GPU's share counts; what is invalid, simulated, suspect, shared or held back
// by a limit that somebody set is none. Owner: who reads results. Thread rule: one thread.
#ifndef ASSAY_COMMON_RESULTS_PEAKS_H_
#define ASSAY_COMMON_RESULTS_PEAKS_H_

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "common/results/record.h"

namespace assay {

class Peaks {
 public:
  // Takes what is a sound cell of mode peak, and passes over everything else.
  void Add(const Record& record);

  // Sets peak_flops_per_second (of the cell's precision), peak_copy_bytes_per_second, mfu_ratio and
  // bandwidth_ratio; each is unknown where something for it is. Cells of mode peak have none.
  // Before ApplyRules, whose rules read them.
  void Join(Record& record) const;

 private:
  std::optional<double> Find(const Record& record, const std::string& model,
                             const std::string& precision) const;

  // Units a second by card, CUDA version, model and precision.
  std::map<std::tuple<std::string, std::string, std::string, std::string>, double> rates_;
};

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_PEAKS_H_
