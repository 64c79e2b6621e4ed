// Fingerprint: what must be equal for two cells to be compared (docs/compare.md).
//
// Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_COMPARE_FINGERPRINT_H_
#define ASSAY_COMMON_RESULTS_COMPARE_FINGERPRINT_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/results/record.h"

namespace assay::compare {

enum class Part {
  kAsked,  // by the matrix; a cell that failed knows it too
  kMath,   // settings of the arithmetic, asked for or by default
  kSeen,   // found where it ran
  kStack,  // what the name of a stack stands for
};

struct FingerprintField {
  std::string_view name;
  Field field;
  Part part;
};

// In the order in which differences are named. `mig` and `published` are no result fields: the
// first is told by the UUIDs, the second by where a record came from.
inline constexpr std::array kFingerprint = {
    FingerprintField{"model", Field::kModel, Part::kAsked},
    FingerprintField{"mode", Field::kMode, Part::kAsked},
    FingerprintField{"precision", Field::kPrecision, Part::kAsked},
    FingerprintField{"lane", Field::kLane, Part::kAsked},
    FingerprintField{"layout", Field::kLayout, Part::kAsked},
    FingerprintField{"image", Field::kImage, Part::kAsked},
    FingerprintField{"accumulate", Field::kAccumulate, Part::kAsked},
    FingerprintField{"scaling", Field::kScaling, Part::kAsked},
    FingerprintField{"gpus", Field::kGpus, Part::kAsked},
    FingerprintField{"nodes", Field::kNodes, Part::kAsked},
    FingerprintField{"data", Field::kData, Part::kAsked},
    FingerprintField{"thermal", Field::kThermal, Part::kAsked},
    FingerprintField{"colocate", Field::kColocate, Part::kAsked},
    FingerprintField{"allow_tf32_matmul", Field::kAllowTf32Matmul, Part::kMath},
    FingerprintField{"allow_tf32_cudnn", Field::kAllowTf32Cudnn, Part::kMath},
    FingerprintField{"cudnn_benchmark", Field::kCudnnBenchmark, Part::kMath},
    FingerprintField{"cudnn_benchmark_limit", Field::kCudnnBenchmarkLimit, Part::kMath},
    FingerprintField{"deterministic", Field::kDeterministic, Part::kMath},
    FingerprintField{"reduced_precision_reduction", Field::kReducedPrecisionReduction, Part::kMath},
    FingerprintField{"reduced_precision_reduction_bf16", Field::kReducedPrecisionReductionBf16,
                     Part::kMath},
    FingerprintField{"fp16_accumulation", Field::kFp16Accumulation, Part::kMath},
    FingerprintField{"attention_backends", Field::kAttentionBackends, Part::kMath},
    FingerprintField{"allocator_settings", Field::kAllocatorSettings, Part::kMath},
    FingerprintField{"unit", Field::kUnit, Part::kSeen},
    FingerprintField{"method_version", Field::kMethodVersion, Part::kSeen},
    FingerprintField{"transport", Field::kTransport, Part::kSeen},
    FingerprintField{"ecc_enabled", Field::kEccEnabled, Part::kSeen},
    FingerprintField{"mig", Field::kGpuUuids, Part::kSeen},
    // Of a record always "false"; where a record is simulated is no part of this.
    FingerprintField{"published", Field::kSimulated, Part::kSeen},
    FingerprintField{"stack", Field::kStack, Part::kStack},
    FingerprintField{"libtorch_version", Field::kLibtorchVersion, Part::kStack},
    FingerprintField{"cuda_version", Field::kCudaVersion, Part::kStack},
    FingerprintField{"cudnn_version", Field::kCudnnVersion, Part::kStack},
};
inline constexpr size_t kFingerprintSize = kFingerprint.size();

// Place in kFingerprint; nullopt for another word.
std::optional<size_t> FingerprintPlace(std::string_view name);
// The same of a name that is known when compiling.
consteval size_t PlaceOf(std::string_view name) {
  for (size_t i = 0; i < kFingerprintSize; ++i) {
    if (kFingerprint[i].name == name) return i;
  }
  throw "no field of the fingerprint";
}

// The value as text, "" where not known. Transport inside a node is a property of card and node, so
// it is known only of gangs over several nodes; `mig` is "true", "false" or "" without a GPU.
std::string FingerprintText(const Record& record, size_t place);

}  // namespace assay::compare

#endif  // ASSAY_COMMON_RESULTS_COMPARE_FINGERPRINT_H_
