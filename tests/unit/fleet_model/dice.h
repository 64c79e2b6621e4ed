// Dice: the random numbers of one seeded schedule; the same on every machine.
#ifndef ASSAY_TESTS_UNIT_FLEET_MODEL_DICE_H_
#define ASSAY_TESTS_UNIT_FLEET_MODEL_DICE_H_

#include <chrono>
#include <cstdint>

namespace assay::model {

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}

  // splitmix64 (Steele, Lea and Flood 2014).
  uint64_t Next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  int Roll(int below) { return static_cast<int>(Next() % static_cast<uint64_t>(below)); }
  bool OneIn(int n) { return Roll(n) == 0; }
  std::chrono::milliseconds Between(std::chrono::milliseconds least,
                                    std::chrono::milliseconds most) {
    return least + std::chrono::milliseconds(Roll(static_cast<int>((most - least).count()) + 1));
  }

 private:
  uint64_t state_;
};

}  // namespace assay::model

#endif  // ASSAY_TESTS_UNIT_FLEET_MODEL_DICE_H_
