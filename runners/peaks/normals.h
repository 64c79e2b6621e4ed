// Operands of random normal values: zeros and constants switch few transistors, so that a card runs
// them with higher clocks and shows a peak that no training reaches.
//
// Pure; any thread.
#ifndef ASSAY_RUNNERS_PEAKS_NORMALS_H_
#define ASSAY_RUNNERS_PEAKS_NORMALS_H_

#include <cstdint>
#include <vector>

namespace assay::peaks {

enum class Number { kFloat32, kFloat16, kBfloat16 };
inline size_t BytesOf(Number number) { return number == Number::kFloat32 ? 4 : 2; }

// A prime number of values, so that rows of a matrix that is filled with the block again and again
// never begin at the same value.
inline constexpr size_t kBlockValues = 1048573;

class NormalBlock {
 public:
  NormalBlock(Number number, uint64_t seed);

  const void* data() const { return bytes_.data(); }
  size_t bytes() const { return bytes_.size(); }
  // Value at a place of a buffer that is filled with the block again and again, as it was rounded.
  float At(uint64_t place) const;

 private:
  const Number number_;
  std::vector<unsigned char> bytes_;
};

// Round to nearest, ties to even. Values of a magnitude below the type's least normal one become
// zero, above its largest one infinity.
uint16_t HalfOf(float value);
uint16_t BrainOf(float value);
float FloatOfHalf(uint16_t bits);
float FloatOfBrain(uint16_t bits);

}  // namespace assay::peaks

#endif  // ASSAY_RUNNERS_PEAKS_NORMALS_H_
