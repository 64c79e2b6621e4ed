// A runner that was built without CUDA has no GPU to call these for.
#include <stdexcept>

#include "runners/train/models/detection/roi_ops.h"

namespace assay::train::cuda {
namespace {
[[noreturn]] void Refuse() { throw std::runtime_error("this runner was built without CUDA"); }
}  // namespace

void PoolRegions(const Pyramid&, const at::Tensor&, const at::Tensor&, at::Tensor&) { Refuse(); }
void PoolRegionsBackward(const Pyramid&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                         std::array<at::Tensor, kPyramidLevels>&) {
  Refuse();
}
at::Tensor KeepSorted(const at::Tensor&, const at::Tensor&, double) { Refuse(); }

}  // namespace assay::train::cuda
