#include "runners/simulate/catalog.h"

#include <algorithm>

#include "simulate_catalog.gen.h"

namespace assay::simulate {

const std::vector<WorkloadFigures>& Workloads() { return generated::kWorkloads; }
const std::vector<std::string>& Modes() { return generated::kModes; }
const std::vector<std::string>& Lanes() { return generated::kLanes; }
const std::vector<std::string>& Layouts() { return generated::kLayouts; }
const std::vector<std::string>& Precisions() { return generated::kPrecisions; }

const WorkloadFigures* FindWorkload(const std::string& name) {
  for (const WorkloadFigures& workload : generated::kWorkloads) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

CardFigures CardOf(const std::string& name, const std::string& kind) {
  CardFigures card;
  if (kind == "cpu") {
    return {name, 0, 0, 32, 50, 1, 0, 0, 1.5, 150};
  }
  const auto found = std::find_if(generated::kCards.begin(), generated::kCards.end(),
                                  [&](const CardFigures& c) { return c.name == name; });
  if (found != generated::kCards.end()) card = *found;
  card.name = name;
  const bool unknown = found == generated::kCards.end();
  if (card.memory_gib <= 0) card.memory_gib = 8;
  if (card.bandwidth_gb_per_second <= 0) card.bandwidth_gb_per_second = 400;
  if (card.fp32_tflops <= 0) card.fp32_tflops = 10;
  if (card.tdp_watts <= 0) card.tdp_watts = 250;
  if (unknown) card.cc_major = 8;
  if (card.cc_major >= 8) {
    if (card.tf32_tflops <= 0) card.tf32_tflops = card.fp32_tflops;
    if (card.bf16_tflops <= 0) card.bf16_tflops = 2 * card.fp32_tflops;
    if (card.fp16_tflops <= 0) card.fp16_tflops = 2 * card.fp32_tflops;
  }
  return card;
}

}  // namespace assay::simulate
