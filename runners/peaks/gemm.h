// Gemm: matrix products by cuBLAS in one precision, in several shapes, on random normal operands.
//
// A product of m x k by k x n is 2 m n k floating-point operations (a multiply-add counts as two).
// Owner: the runner; its candidates must not outlive it. Thread rule: one thread. Errors:
// CudaError.
#ifndef ASSAY_RUNNERS_PEAKS_GEMM_H_
#define ASSAY_RUNNERS_PEAKS_GEMM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runners/peaks/candidate.h"
#include "runners/peaks/gpu.h"
#include "runners/peaks/normals.h"

namespace assay::peaks {

struct GemmShape {
  int m = 0, n = 0, k = 0;
  bool transposed_a = false;  // A lies as k x m, which is what a linear layer's forward pass has
  std::string Text() const;   // "8192x8192x8192 TN"
};

struct GemmKind {
  Number number = Number::kFloat32;  // of A, B and C
  bool tf32 = false;                 // operands cut to TF32 by the unit
  bool accumulate_fp16 = false;      // sums in FP16; else in FP32
};

// What a product of this precision is made of: fp32, tf32, amp-fp16, amp-bf16 as a cell of that
// precision has its products, with sums in FP32 unless `accumulate_fp16`.
GemmKind GemmKindOf(const std::string& precision, bool accumulate_fp16);

// Shapes whose three matrices take at most `bytes`, small ones first; the smallest in any case.
std::vector<GemmShape> GemmShapes(size_t bytes_per_value, uint64_t bytes);

class Gemm {
 public:
  Gemm(const Gpu& gpu, const GemmKind& kind, uint64_t seed);
  std::vector<Candidate> Candidates() const;

 private:
  void Queue(const GemmShape& shape) const;
  // Compares some elements of the last product with sums in double precision; empty: they are
  // right.
  std::string Fault(const GemmShape& shape) const;

  const Gpu& gpu_;
  const GemmKind kind_;
  const uint64_t seed_;
  const NormalBlock a_values_, b_values_;
  const std::vector<GemmShape> shapes_;
  std::unique_ptr<DeviceBuffer> a_, b_, c_;
};

}  // namespace assay::peaks

#endif  // ASSAY_RUNNERS_PEAKS_GEMM_H_
