#include "agent/cell/runner_environment.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace assay {
namespace {

// Paths, locale and caches that libraries need; NCCL's settings, which operators set for a node and
// without which some boards hang (case 16); where sanitizers put their reports; where LibTorch
// and cuBLAS are and how many threads the one takes.
constexpr std::array<std::string_view, 19> kNames = {"PATH",
                                                     "HOME",
                                                     "USER",
                                                     "LOGNAME",
                                                     "LANG",
                                                     "LC_ALL",
                                                     "TZ",
                                                     "TMPDIR",
                                                     "XDG_CACHE_HOME",
                                                     "LD_LIBRARY_PATH",
                                                     "ASSAY_LIBTORCH",
                                                     "ASSAY_CUBLAS",
                                                     "CUDA_HOME",
                                                     "CUDA_CACHE_PATH",
                                                     "ASAN_OPTIONS",
                                                     "LSAN_OPTIONS",
                                                     "TSAN_OPTIONS",
                                                     "UBSAN_OPTIONS",
                                                     "NVIDIA_DRIVER_CAPABILITIES"};
constexpr std::array<std::string_view, 5> kPrefixes = {"NCCL_", "OMP_", "GOMP_", "MKL_",
                                                       "ASSAY_SIMULATE"};

}  // namespace

bool IsPassedOn(const std::string& name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Environment RunnerEnvironment(const Environment& agent, const Environment& stack,
                              const Device& device) {
  Environment environment;
  for (const auto& [name, value] : agent) {
    if (IsPassedOn(name)) environment[name] = value;
  }
  for (const auto& [name, value] : stack) environment[name] = value;
  const bool has_gpu = device.kind != "cpu" && !device.simulated;
  environment["CUDA_VISIBLE_DEVICES"] = has_gpu ? device.uuid : "";
  environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  return environment;
}

}  // namespace assay
