#include "runners/simulate/step_noise.h"

#include <algorithm>

namespace assay::simulate {
namespace {

constexpr double kProcessSpread = 0.004;
constexpr double kStepSpread = 0.008;
constexpr int kSlowSteps = 8;

}  // namespace

StepNoise::StepNoise(uint64_t seed, const std::string& identity) : state_(seed) {
  // FNV-1a: std::hash is not the same everywhere.
  uint64_t hash = 14695981039346656037ull;
  for (const char c : identity) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  state_ ^= hash;
  process_factor_ = 1 + kProcessSpread * NextNormal();
}

double StepNoise::Next() {
  double factor = process_factor_ * (1 + kStepSpread * NextNormal());
  if (step_ < kSlowSteps) factor *= 1 + 3.0 / static_cast<double>(1 << step_);
  ++step_;
  return std::max(factor, 0.5);
}

// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA
// 2014).
uint64_t StepNoise::NextBits() {
  state_ += 0x9e3779b97f4a7c15ull;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Sum of twelve uniform values less six: variance 1, within 6, near enough to normal, and the same
// bits everywhere.
double StepNoise::NextNormal() {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(NextBits() >> 11) * 0x1.0p-53;
  return sum;
}

}  // namespace assay::simulate
