#include "runners/peaks/normals.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace assay::peaks {
namespace {

constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7f800000;

// Drops `bits` low bits to the nearest, ties to even.
uint32_t RoundOff(uint32_t value, int bits) {
  const uint32_t half = (1u << (bits - 1)) - 1;
  return (value + half + ((value >> bits) & 1)) >> bits;
}

}  // namespace

uint16_t HalfOf(float value) {
  const auto all = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (all & kSign) >> 16, magnitude = all & ~kSign;
  if (magnitude > kInfinity) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude < 0x38800000) return static_cast<uint16_t>(sign);  // 2^-14
  // The exponent's bias is 127 in one and 15 in the other.
  const uint32_t rounded = RoundOff(magnitude - (112u << 23), 13);
  return static_cast<uint16_t>(sign | (rounded > 0x7c00 ? 0x7c00 : rounded));
}

float FloatOfHalf(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude < 0x0400) {  // also what a device rounds to below 2^-14
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::ldexp(float(magnitude), -24)));
  }
  if (magnitude >= 0x7c00)
    return std::bit_cast<float>(sign | kInfinity | (magnitude & 0x3ff) << 13);
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

uint16_t BrainOf(float value) {
  const auto all = std::bit_cast<uint32_t>(value);
  if ((all & ~kSign) > kInfinity) return static_cast<uint16_t>(all >> 16 | 0x40);
  return static_cast<uint16_t>(RoundOff(all, 16));
}

float FloatOfBrain(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

NormalBlock::NormalBlock(Number number, uint64_t seed)
    : number_(number), bytes_(kBlockValues * BytesOf(number)) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < kBlockValues; ++i) {
    const float value = normal(random);
    if (number == Number::kFloat32) {
      std::memcpy(&bytes_[i * 4], &value, 4);
    } else {
      const uint16_t bits = number == Number::kFloat16 ? HalfOf(value) : BrainOf(value);
      std::memcpy(&bytes_[i * 2], &bits, 2);
    }
  }
}

float NormalBlock::At(uint64_t place) const {
  const size_t i = place % kBlockValues;
  if (number_ == Number::kFloat32) {
    float value;
    std::memcpy(&value, &bytes_[i * 4], 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, &bytes_[i * 2], 2);
  return number_ == Number::kFloat16 ? FloatOfHalf(bits) : FloatOfBrain(bits);
}

}  // namespace assay::peaks
