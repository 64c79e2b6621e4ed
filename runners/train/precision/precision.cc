#include "runners/train/precision/precision.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

#include <cstdlib>
#include <type_traits>
#include <utility>

namespace assay::train {
namespace {

// A bool up to LibTorch 2.8; later one of three, of which the first allows it.
template <typename Option>
bool Allows(Option option) {
  if constexpr (std::is_same_v<Option, bool>) {
    return option;
  } else {
    return option == Option::AllowReducedPrecisionWithSplitK;
  }
}

std::string AttentionBackends(const at::Context& context) {
  std::string names;
  for (const auto& [name, allowed] : {std::pair{"flash", context.userEnabledFlashSDP()},
                                      {"mem_efficient", context.userEnabledMemEfficientSDP()},
                                      {"cudnn", context.userEnabledCuDNNSDP()},
                                      {"math", context.userEnabledMathSDP()}}) {
    if (allowed) names += (names.empty() ? "" : ",") + std::string(name);
  }
  return names;
}

// LibTorch reads them when it is loaded and has no way to ask that all its versions share.
std::string AllocatorSettings() {
  std::string settings;
  for (const char* name :
       {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == 0) continue;
    settings += (settings.empty() ? "" : " ") + std::string(name) + "=" + value;
  }
  return settings.empty() ? "default" : settings;
}

MathSettings ReadMath(const at::Context& context) {
  return {.allow_tf32_matmul = context.allowTF32CuBLAS(),
          .allow_tf32_cudnn = context.allowTF32CuDNN(),
          .cudnn_benchmark = context.benchmarkCuDNN(),
          .cudnn_benchmark_limit = context.benchmarkLimitCuDNN(),
          .deterministic = context.deterministicAlgorithms() || context.deterministicCuDNN(),
          .reduced_precision_reduction_fp16 = Allows(context.allowFP16ReductionCuBLAS()),
          .reduced_precision_reduction_bf16 = Allows(context.allowBF16ReductionCuBLAS()),
          .fp16_accumulation = context.allowFP16AccumulationCuBLAS(),
          .attention_backends = AttentionBackends(context),
          .allocator_settings = AllocatorSettings()};
}

}  // namespace

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
  unsetenv("NVIDIA_TF32_OVERRIDE");
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
  context.setSDPUseFlash(true);
  context.setSDPUseMemEfficient(true);
  context.setSDPUseCuDNN(true);
  context.setSDPUseMath(true);
  context.setAllowFP16BF16ReductionMathSDP(false);
  return ReadMath(context);
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
