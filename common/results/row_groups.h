// RowGroups: which records are repeats of one measurement, and so one row of a table.
//
// Records of one spec on one target with one stack of the same software. A cell that never ran may
// not know its stack; it belongs to the group of its spec and target all the same. Thread rule: one
// owner.
#ifndef ASSAY_COMMON_RESULTS_ROW_GROUPS_H_
#define ASSAY_COMMON_RESULTS_ROW_GROUPS_H_

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/results/record.h"

namespace assay {

struct RowGroup {
  // What must be the same for processes to be repeats of one measurement, beside spec, target and
  // stack: a stack keeps its name when its operator builds it anew or updates the driver, a runner
  // may change its unit, some math settings come from the agent's environment, and ECC is set at a
  // boot.
  static constexpr std::array kAlike = {Field::kUnit,
                                        Field::kMethodVersion,
                                        Field::kDriverVersion,
                                        Field::kLibtorchVersion,
                                        Field::kCudaVersion,
                                        Field::kCudnnVersion,
                                        Field::kNcclVersion,
                                        Field::kRunnerVersion,
                                        Field::kStackDigest,
                                        Field::kAllowTf32Matmul,
                                        Field::kAllowTf32Cudnn,
                                        Field::kReducedPrecisionReduction,
                                        Field::kReducedPrecisionReductionBf16,
                                        Field::kFp16Accumulation,
                                        Field::kCudnnBenchmark,
                                        Field::kCudnnBenchmarkLimit,
                                        Field::kDeterministic,
                                        Field::kAttentionBackends,
                                        Field::kAllocatorSettings,
                                        Field::kEccEnabled};

  std::string stack;  // "" until a record knows it
  bool simulated = false;
  std::array<std::string, kAlike.size()> alike;  // each "" until a record knows it

  // Number of the measuring method; "" while not known.
  const std::string& Method() const { return alike[1]; }

  // The first thing that `other` has otherwise, as it is here: "driver_version 535.54"; "" where
  // there is none.
  std::string DifferenceFrom(const RowGroup& other) const;
};
static_assert(RowGroup::kAlike[1] == Field::kMethodVersion);

class RowGroups {
 public:
  // The record's group, by its place in groups(): the first that it belongs to, or a new one.
  size_t Add(const Record& record);
  const std::vector<RowGroup>& groups() const { return groups_; }

 private:
  std::vector<RowGroup> groups_;
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> by_place_;  // key and target
};

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_ROW_GROUPS_H_
