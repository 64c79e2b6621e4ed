// Drift: how much a GPU changed across a cell, by the readings of its sentinel
// (docs/adr/0004-sentinel.md).
//
// A reading is stored with the cell behind it, so what came after a cell stands in later records:
// they are gathered first, then each record is told. Thread rule: one owner.
#ifndef ASSAY_COMMON_RESULTS_DRIFT_H_
#define ASSAY_COMMON_RESULTS_DRIFT_H_

#include <cstdint>
#include <map>
#include <string>

#include "common/results/record.h"

namespace assay {

class SentinelReadings {
 public:
  void Add(const Record& record);
  bool empty() const { return series_.empty(); }

  // Sets drift_ratio where the reading before the cell and one behind it are known; clears it
  // elsewhere. Of several behind it the next one counts.
  void FillDrift(Record& record) const;

 private:
  // By number.
  std::map<std::string, std::map<int64_t, double>> series_;
};

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_DRIFT_H_
