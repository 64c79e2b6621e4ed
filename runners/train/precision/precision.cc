#include "runners/train/precision/precision.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

namespace assay::train {

const std::vector<std::string>& PrecisionNames() {
  static const std::vector<std::string> names = {"fp32", "tf32", "amp-fp16", "amp-bf16"};
  return names;
}

std::optional<Precision> ParsePrecision(const std::string& name) {
  const std::vector<std::string>& names = PrecisionNames();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Precision>(i);
  }
  return std::nullopt;
}

MathSettings SetMath(Precision precision) {
  at::Context& context = at::globalContext();
  const bool tf32 = precision == Precision::kTf32;
  const bool amp = precision == Precision::kAmpFp16 || precision == Precision::kAmpBf16;
  context.setAllowTF32CuBLAS(tf32);
  context.setAllowTF32CuDNN(tf32);
  context.setAllowFP16ReductionCuBLAS(amp);
  context.setAllowBF16ReductionCuBLAS(amp);
  context.setAllowFP16AccumulationCuBLAS(false);
  context.setBenchmarkCuDNN(true);
  context.setBenchmarkLimitCuDNN(10);
  context.setDeterministicCuDNN(false);
  context.setDeterministicAlgorithms(false, false);
  return {.allow_tf32_matmul = context.allowTF32CuBLAS(),
          .allow_tf32_cudnn = context.allowTF32CuDNN(),
          .cudnn_benchmark = context.benchmarkCuDNN(),
          .deterministic = context.deterministicAlgorithms() || context.deterministicCuDNN(),
          .reduced_precision_reduction = amp};
}

AutocastScope::AutocastScope(Precision precision, c10::DeviceType device)
    : active_(precision == Precision::kAmpFp16 || precision == Precision::kAmpBf16),
      device_(device) {
  if (!active_) return;
  at::autocast::set_autocast_dtype(device_,
                                   precision == Precision::kAmpFp16 ? at::kHalf : at::kBFloat16);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_cache_enabled(true);
}

AutocastScope::~AutocastScope() {
  if (!active_) return;
  at::autocast::set_autocast_enabled(device_, false);
  at::autocast::clear_cache();
}

}  // namespace assay::train
