#include "runners/train/precision/loss_scaler.h"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

namespace assay::train {
namespace {
constexpr double kGrowthFactor = 2.0;
constexpr double kBackoffFactor = 0.5;
constexpr int64_t kGrowthInterval = 2000;
}  // namespace

LossScaler::LossScaler(c10::Device device, double first_scale)
    : scale_(at::full({1}, first_scale, at::TensorOptions(at::kFloat).device(device))),
      growth_tracker_(at::zeros({1}, at::TensorOptions(at::kInt).device(device))),
      found_inf_(at::zeros({1}, at::TensorOptions(at::kFloat).device(device))) {}

at::Tensor LossScaler::Scale(const at::Tensor& loss) const { return loss.mul(scale_); }

void LossScaler::Unscale(std::vector<at::Tensor>& gradients) {
  found_inf_.zero_();
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf_, scale_.reciprocal());
}

void LossScaler::Update() {
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf_, kGrowthFactor, kBackoffFactor,
                         kGrowthInterval);
}

}  // namespace assay::train
