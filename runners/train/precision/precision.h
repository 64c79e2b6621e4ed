// Precision: what fp32, tf32, amp-fp16 and amp-bf16 mean here, and the math settings of the
// process.
//
// fp32      TF32 off in matrix products and convolutions, reduced-precision reductions off
// tf32      fp32 tensors, TF32 on in both
// amp-*     autocast with float16 or bfloat16; TF32 off for what stays in fp32; reduced-precision
//           reductions on, as is LibTorch's default
// Always: cuDNN's algorithm search on with its limit of 10 plans, fp16 accumulation off,
// deterministic algorithms not asked for, every backend of attention allowed but reductions in
// reduced precision in its plain one.
//
// Thread rule: the settings are the process's; set once, before the first tensor operation.
#ifndef ASSAY_RUNNERS_TRAIN_PRECISION_PRECISION_H_
#define ASSAY_RUNNERS_TRAIN_PRECISION_PRECISION_H_

#include <c10/core/DeviceType.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::train {

enum class Precision { kFp32, kTf32, kAmpFp16, kAmpBf16 };

const std::vector<std::string>& PrecisionNames();
std::optional<Precision> ParsePrecision(const std::string& name);

// As read back from LibTorch after setting, for the record.
struct MathSettings {
  bool allow_tf32_matmul = false;
  bool allow_tf32_cudnn = false;
  bool cudnn_benchmark = false;
  int64_t cudnn_benchmark_limit = 0;
  bool deterministic = false;
  bool reduced_precision_reduction_fp16 = false;
  bool reduced_precision_reduction_bf16 = false;
  bool fp16_accumulation = false;
  std::string attention_backends;  // those allowed, joined by ','
  std::string allocator_settings;  // of the environment; "default" where it has none
};

// Also takes NVIDIA_TF32_OVERRIDE out of the environment, which would overrule it all unseen.
MathSettings SetMath(Precision precision);

// Autocast for the life of the object, with its weight cache cleared at the end, as
// torch.autocast does; nothing for fp32 and tf32.
class AutocastScope {
 public:
  AutocastScope(Precision precision, c10::DeviceType device);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  const bool active_;
  const c10::DeviceType device_;
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_PRECISION_PRECISION_H_
