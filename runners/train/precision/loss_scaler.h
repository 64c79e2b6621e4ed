// LossScaler: dynamic loss scaling for amp-fp16, wholly on the device.
//
// Micikevicius et al., "Mixed Precision Training" (2018), with the constants of
// torch.amp.GradScaler: start 65,536, times 2 after 2,000 steps without overflow, times 0.5 and a
// skipped step after one. The host never reads the flag: the optimizer takes it as a tensor, so
// that no step waits for the device.
//
// Owner: the Trainer. Thread rule: one thread.
#ifndef ASSAY_RUNNERS_TRAIN_PRECISION_LOSS_SCALER_H_
#define ASSAY_RUNNERS_TRAIN_PRECISION_LOSS_SCALER_H_

#include <ATen/core/Tensor.h>

#include <vector>

namespace assay::train {

class LossScaler {
 public:
  explicit LossScaler(c10::Device device, double first_scale = 65536.0);

  at::Tensor Scale(const at::Tensor& loss) const;
  // Divides the gradients by the scale and sets found_inf() to 1 where one is not finite.
  void Unscale(std::vector<at::Tensor>& gradients);
  // After the optimizer's step.
  void Update();

  const at::Tensor& found_inf() const { return found_inf_; }  // float32, one element
  const at::Tensor& scale() const { return scale_; }          // float32, one element

 private:
  at::Tensor scale_, growth_tracker_, found_inf_;
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_PRECISION_LOSS_SCALER_H_
