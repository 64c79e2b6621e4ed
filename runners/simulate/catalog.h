// What the simulator knows of cards and workloads: the figures of catalog/*.yaml, compiled in.
#ifndef ASSAY_RUNNERS_SIMULATE_CATALOG_H_
#define ASSAY_RUNNERS_SIMULATE_CATALOG_H_

#include <cstdint>
#include <string>
#include <vector>

namespace assay::simulate {

// 0 where the catalogue does not know a figure. TFLOP/s dense, at boost clock.
struct CardFigures {
  std::string name;
  int cc_major = 0, cc_minor = 0;
  double memory_gib = 0, bandwidth_gb_per_second = 0;
  double fp32_tflops = 0, tf32_tflops = 0, fp16_tflops = 0, bf16_tflops = 0;
  double tdp_watts = 0;
};

struct MemoryFigures {
  std::string precision, mode;
  double fixed_bytes = 0, per_sample_bytes = 0;  // at the default image
};

struct WorkloadFigures {
  std::string name, sample_unit, image;
  int64_t parameters = 0;
  double train_flops = 0, infer_flops = 0;  // a sample, at the default image
  std::vector<std::string> layouts;         // the first is the default
  std::vector<MemoryFigures> memory;
};

const std::vector<WorkloadFigures>& Workloads();
const WorkloadFigures* FindWorkload(const std::string& name);  // null where not listed
const std::vector<std::string>& Modes();
const std::vector<std::string>& Lanes();
const std::vector<std::string>& Layouts();
const std::vector<std::string>& Precisions();

// Never fails: a card that the catalogue lacks, or figures that it does not know, are those of a
// middling card (10 TFLOP/s, 400 GB/s, 8 GiB), so that odd names can be rehearsed too. `kind` "cpu"
// gives a processor.
CardFigures CardOf(const std::string& name, const std::string& kind);

}  // namespace assay::simulate

#endif  // ASSAY_RUNNERS_SIMULATE_CATALOG_H_
