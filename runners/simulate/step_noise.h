// StepNoise: step times of a simulated process: the same for the same seed, on every machine.
//
// A process is off its model by some 0.4 % (placement, clocks), a step by some 0.8 %; the first
// steps are slower, as they are with cuDNN's search. Own generator and normal deviate, since the
// standard library's distributions differ between implementations.
#ifndef ASSAY_RUNNERS_SIMULATE_STEP_NOISE_H_
#define ASSAY_RUNNERS_SIMULATE_STEP_NOISE_H_

#include <cstdint>
#include <string>

namespace assay::simulate {

class StepNoise {
 public:
  // Ranks of a gang step together: leave the rank out of `identity`.
  StepNoise(uint64_t seed, const std::string& identity);

  // Factor on the model's step time for the next step; about 1, always above 0.5.
  double Next();

 private:
  uint64_t NextBits();
  double NextNormal();

  uint64_t state_;
  double process_factor_;
  int64_t step_ = 0;
};

}  // namespace assay::simulate

#endif  // ASSAY_RUNNERS_SIMULATE_STEP_NOISE_H_
