#include "runners/simulate/roofline.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace assay::simulate {
namespace {

std::optional<double> AreaOf(const std::string& image) {
  const size_t x = image.find('x');
  if (x == std::string::npos) return std::nullopt;
  int sides[2] = {0, 0};
  const char* const bounds[3] = {image.data(), image.data() + x, image.data() + image.size()};
  for (int i = 0; i < 2; ++i) {
    const char* begin = bounds[i] + (i == 1 ? 1 : 0);
    const auto [end, error] = std::from_chars(begin, bounds[i + 1], sides[i]);
    if (error != std::errc() || end != bounds[i + 1] || sides[i] < 1 || sides[i] > 65536) {
      return std::nullopt;
    }
  }
  return static_cast<double>(sides[0]) * sides[1];
}

const MemoryFigures* MemoryLine(const WorkloadFigures& workload, const Spec& spec) {
  for (const MemoryFigures& line : workload.memory) {
    if (line.precision == spec.precision && line.mode == spec.mode) return &line;
  }
  return nullptr;
}

// Share of the launches of an eager step, and of its memory traffic, that a lane leaves.
struct LaneFactors {
  double host, traffic;
};

LaneFactors FactorsOf(const std::string& lane) {
  if (lane == "graph") return {0.1, 1};
  if (lane == "fused") return {0.1, 0.85};
  if (lane == "compile") return {0.3, 0.8};
  return {1, 1};
}

// Ring all-reduce of fp32 gradients, 2 (w - 1) / w of the bytes over the slowest link, of which 70
// % hides behind the backward pass.
double ReduceSeconds(const CardFigures& card, const WorkloadFigures& workload, const Spec& spec) {
  const auto world = static_cast<double>(spec.WorldSize());
  if (spec.mode != "train" || world < 2) return 0;
  const bool datacenter = card.bandwidth_gb_per_second >= 1500;
  const double link = spec.nodes > 1 ? 10e9 : datacenter ? 200e9 : 12e9;
  return 0.3 * 2 * (world - 1) / world * 4 * static_cast<double>(workload.parameters) / link;
}

}  // namespace

double PeakTflops(const CardFigures& card, const std::string& precision) {
  if (precision == "fp32") return card.fp32_tflops;
  if (precision == "tf32") return card.tf32_tflops;
  if (precision == "amp-bf16") return card.bf16_tflops;
  if (precision != "amp-fp16" || card.cc_major == 0) return 0;
  // Without tensor cores mixed precision saves memory traffic only.
  return card.fp16_tflops > 0 ? card.fp16_tflops : card.fp32_tflops;
}

std::optional<double> ImageScale(const std::string& image, const WorkloadFigures& workload) {
  if (image.empty()) return 1;
  const auto asked = AreaOf(image), usual = AreaOf(workload.image);
  if (!asked || !usual) return std::nullopt;
  return *asked / *usual;
}

StepModel ModelStep(const CardFigures& card, const WorkloadFigures& workload, const Spec& spec,
                    double image_scale, int64_t rank_batch) {
  // Shares of peak and bandwidth that frameworks reach on these models, and how often a step
  // touches its activations; chosen so that ResNet-50 comes out within a third of published
  // figures.
  const bool train = spec.mode == "train";
  const double peak_share = spec.precision == "fp32" ? 0.55 : 0.4;
  const double touches = train ? 5 : 12;
  const LaneFactors lane = FactorsOf(spec.lane);
  const auto micro = static_cast<double>(rank_batch) / static_cast<double>(spec.accumulate);
  const double flops = (train ? workload.train_flops : workload.infer_flops) * image_scale * micro;
  const MemoryFigures* line = MemoryLine(workload, spec);
  const double fixed = line ? line->fixed_bytes : 1e9;
  const double sample_bytes = (line ? line->per_sample_bytes : 1e8) * image_scale;

  double compute = flops / (PeakTflops(card, spec.precision) * 1e12 * peak_share);
  const double traffic =
      touches * sample_bytes * micro * lane.traffic / (0.8 * card.bandwidth_gb_per_second * 1e9);
  if (spec.layout != workload.layouts.front()) compute *= 1.3;
  const double device = std::hypot(compute, traffic);
  const double host = (train ? 9e-3 : 2.5e-3) * lane.host;
  const auto micros = static_cast<double>(spec.accumulate);
  StepModel model;
  model.device_seconds = micros * device;
  model.seconds = micros * std::max(device, host) + ReduceSeconds(card, workload, spec);
  model.memory_bytes = fixed + sample_bytes * micro;
  return model;
}

}  // namespace assay::simulate
