#include "runners/peaks/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace assay::peaks {
namespace {

uint64_t Values(int rows, int columns) {
  return static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns);
}

int DataType(Number number) {
  if (number == Number::kFloat32) return cuda_api::kReal32;
  return number == Number::kFloat16 ? cuda_api::kReal16 : cuda_api::kBrainReal16;
}

int ComputeType(const GemmKind& kind) {
  if (kind.accumulate_fp16) return cuda_api::kCompute16;
  return kind.tf32 ? cuda_api::kCompute32FastTf32 : cuda_api::kCompute32;
}

float FloatOf(Number number, const unsigned char* bytes) {
  if (number == Number::kFloat32) {
    float value;
    std::memcpy(&value, bytes, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, bytes, 2);
  return number == Number::kFloat16 ? FloatOfHalf(bits) : FloatOfBrain(bits);
}

// Largest error that is rounding, over sqrt(k), the spread of a sum of k products of normal values.
// Sums in FP16 round at each of many additions by up to 2^-11 of a value of that size.
double Tolerance(const GemmKind& kind) { return kind.accumulate_fp16 ? 0.2 : 0.02; }

}  // namespace

std::string GemmShape::Text() const {
  return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
         (transposed_a ? " TN" : " NN");
}

GemmKind GemmKindOf(const std::string& precision, bool accumulate_fp16) {
  GemmKind kind;
  if (precision == "amp-fp16") kind.number = Number::kFloat16;
  if (precision == "amp-bf16") kind.number = Number::kBfloat16;
  kind.tf32 = precision == "tf32";
  kind.accumulate_fp16 = accumulate_fp16;
  return kind;
}

std::vector<GemmShape> GemmShapes(size_t bytes_per_value, uint64_t bytes) {
  std::vector<GemmShape> shapes;
  for (const int side : {4096, 6144, 8192, 12288, 16384}) {
    if (!shapes.empty() && 3 * Values(side, side) * bytes_per_value > bytes) break;
    for (const bool transposed : {false, true}) shapes.push_back({side, side, side, transposed});
  }
  return shapes;
}

Gemm::Gemm(const Gpu& gpu, const GemmKind& kind, uint64_t seed)
    : gpu_(gpu),
      kind_(kind),
      seed_(seed),
      a_values_(kind.number, seed),
      b_values_(kind.number, seed + 1),
      shapes_(GemmShapes(BytesOf(kind.number), gpu.FreeBytes() / 2)) {
  uint64_t a = 0, b = 0, c = 0;
  for (const GemmShape& shape : shapes_) {
    a = std::max(a, Values(shape.m, shape.k));
    b = std::max(b, Values(shape.k, shape.n));
    c = std::max(c, Values(shape.m, shape.n));
  }
  const size_t bytes = BytesOf(kind.number);
  a_ = std::make_unique<DeviceBuffer>(gpu, a * bytes);
  b_ = std::make_unique<DeviceBuffer>(gpu, b * bytes);
  c_ = std::make_unique<DeviceBuffer>(gpu, c * bytes);
  a_->FillWith(a_values_.data(), a_values_.bytes());
  b_->FillWith(b_values_.data(), b_values_.bytes());
}

std::vector<Candidate> Gemm::Candidates() const {
  std::vector<Candidate> candidates;
  for (const GemmShape& shape : shapes_) {
    candidates.push_back({.shape = shape.Text(),
                          .units = 2e-9 * shape.m * shape.n * shape.k,
                          .queue = [this, shape] { Queue(shape); },
                          .fault = [this, shape] { return Fault(shape); }});
  }
  return candidates;
}

void Gemm::Queue(const GemmShape& shape) const {
  const float one = 1, zero = 0;
  const uint16_t half_one = HalfOf(one), half_zero = 0;
  const bool half = kind_.accumulate_fp16;  // then the factors are of that type too
  const int type = DataType(kind_.number);
  gpu_.blas().Check(
      gpu_.blas()->GemmEx(
          gpu_.handle(), shape.transposed_a ? cuda_api::kOpT : cuda_api::kOpN, cuda_api::kOpN,
          shape.m, shape.n, shape.k, half ? static_cast<const void*>(&half_one) : &one,
          reinterpret_cast<const void*>(a_->pointer()), type,
          shape.transposed_a ? shape.k : shape.m, reinterpret_cast<const void*>(b_->pointer()),
          type, shape.k, half ? static_cast<const void*>(&half_zero) : &zero,
          reinterpret_cast<void*>(c_->pointer()), type, shape.m, ComputeType(kind_),
          cuda_api::kGemmDefault),
      "cublasGemmEx");
}

std::string Gemm::Fault(const GemmShape& shape) const {
  std::mt19937_64 random(seed_);
  const size_t bytes = BytesOf(kind_.number);
  const double most = Tolerance(kind_) * std::sqrt(static_cast<double>(shape.k));
  for (int i = 0; i < 16; ++i) {
    const uint64_t row = random() % static_cast<uint64_t>(shape.m);
    const uint64_t column = random() % static_cast<uint64_t>(shape.n);
    const auto m = static_cast<uint64_t>(shape.m), k = static_cast<uint64_t>(shape.k);
    double sum = 0;
    for (uint64_t l = 0; l < k; ++l) {
      sum += static_cast<double>(a_values_.At(shape.transposed_a ? l + row * k : row + l * m)) *
             static_cast<double>(b_values_.At(l + column * k));
    }
    unsigned char raw[4];
    c_->Read(raw, (row + column * m) * bytes, bytes);
    const double got = FloatOf(kind_.number, raw);
    if (!(std::abs(got - sum) <= most)) {
      return "element (" + std::to_string(row) + ", " + std::to_string(column) +
             ") of the product is " + std::to_string(got) + " and must be " + std::to_string(sum);
    }
  }
  return "";
}

}  // namespace assay::peaks
