// WorkloadCatalog: what can be asked for, as catalog/workloads.yaml lists it: models with their
// modes, lanes, precisions, defaults and estimates, and the least compute capability a precision.
//
// Owner: one immutable built-in instance, embedded at build time. Thread rule: any thread.
#ifndef ASSAY_COMMON_CATALOG_WORKLOAD_CATALOG_H_
#define ASSAY_COMMON_CATALOG_WORKLOAD_CATALOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

struct PrecisionFacts {
  std::string name;  // fp32, tf32, amp-fp16, amp-bf16
  int cc_major = 0;  // least compute capability; 0.0: every card
  int cc_minor = 0;
  bool on_cpu = false;  // a processor's runner can do it
};

// Estimate of the memory a cell needs: fixed + per_sample * micro-batch. Never a reason to refuse.
struct MemoryLine {
  double fixed_bytes = 0;
  double per_sample_bytes = 0;
};

struct Workload {
  std::string name;
  std::string title;
  std::string sample_unit;    // "img", "sequences"; of a peak "GFLOP", "GB"
  std::string default_image;  // HEIGHTxWIDTH; empty for a model without images
  int64_t parameters = 0;
  double infer_flops_per_sample = 0;  // at the default image; a multiply-add is two
  double train_flops_per_sample = 0;
  std::vector<std::string> modes, lanes, precisions, layouts;  // the first layout is the default
  std::map<std::pair<std::string, std::string>, MemoryLine> memory;  // by (precision, mode)

  // A ceiling of a card, which trains nothing: it has the mode peak and no estimates.
  bool IsPeak() const;

  // Estimate in bytes at `micro_batch` samples, the per-sample part scaled by the area of `image`
  // (empty: the default); empty where the catalogue has no line.
  std::optional<double> MemoryEstimateBytes(std::string_view precision, std::string_view mode,
                                            std::string_view image, int64_t micro_batch) const;
};

class WorkloadCatalog {
 public:
  // InvalidArgument with one line a fault.
  static absl::StatusOr<WorkloadCatalog> Parse(std::string_view yaml, std::string_view file_name);

  const Workload* Find(std::string_view name) const;                 // null where not listed
  const PrecisionFacts* FindPrecision(std::string_view name) const;  // null where not listed

  const std::vector<Workload>& workloads() const { return workloads_; }
  const std::vector<PrecisionFacts>& precisions() const { return precisions_; }
  // Every value of the axis that some runner may know, in the catalogue's order.
  const std::vector<std::string>& modes() const { return modes_; }
  const std::vector<std::string>& lanes() const { return lanes_; }
  const std::vector<std::string>& layouts() const { return layouts_; }

 private:
  std::vector<Workload> workloads_;
  std::vector<PrecisionFacts> precisions_;
  std::vector<std::string> modes_, lanes_, layouts_;
};

// The catalogue that this program was built with.
const WorkloadCatalog& BuiltinWorkloads();

// Splits "HEIGHTxWIDTH" with both from 1 to 65536; empty where it is not that.
std::optional<std::pair<int64_t, int64_t>> ParseImageSize(std::string_view image);

}  // namespace assay

#endif  // ASSAY_COMMON_CATALOG_WORKLOAD_CATALOG_H_
