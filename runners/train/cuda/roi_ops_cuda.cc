// The GPU's part of roi_ops.h: tensors to the pointers of roi_kernels.h.
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <stdexcept>

#include "runners/train/cuda/roi_kernels.h"
#include "runners/train/models/detection/roi_ops.h"

namespace assay::train::cuda {
namespace {

// More boxes' words than a block's shared memory holds without asking for more.
constexpr int64_t kMostBoxes = 64 * 5000;

RoiType TypeOf(const at::Tensor& features) {
  switch (features.scalar_type()) {
    case at::kFloat:
      return RoiType::kFloat;
    case at::kHalf:
      return RoiType::kHalf;
    case at::kBFloat16:
      return RoiType::kBfloat16;
    default:
      throw std::runtime_error("ROI align takes features in fp32, fp16 and bf16");
  }
}

// `rois` and `levels` are contiguous and outlive what is queued.
RoiPooling PoolingOf(const Pyramid& pyramid, const at::Tensor& rois, const at::Tensor& levels,
                     const std::array<at::Tensor, kPyramidLevels>* gradients) {
  RoiPooling pooling{};
  for (int i = 0; i < kPyramidLevels; ++i) {
    const at::Tensor& map = pyramid.features[i];
    if (gradients != nullptr && (*gradients)[i].strides() != map.strides()) {
      throw std::runtime_error("ROI align: a gradient lies otherwise than its features");
    }
    pooling.levels[i] = {map.const_data_ptr(),
                         gradients != nullptr ? (*gradients)[i].mutable_data_ptr<float>() : nullptr,
                         map.stride(0),
                         map.stride(1),
                         map.stride(2),
                         map.stride(3),
                         static_cast<int>(map.size(2)),
                         static_cast<int>(map.size(3)),
                         static_cast<float>(pyramid.scales[i])};
  }
  pooling.rois = rois.const_data_ptr<float>();
  pooling.level_of = levels.const_data_ptr<int64_t>();
  pooling.count = rois.size(0);
  pooling.channels = static_cast<int>(pyramid.features[0].size(1));
  pooling.size = kRoiSize;
  pooling.samples = kRoiSamples;
  return pooling;
}

}  // namespace

void PoolRegions(const Pyramid& pyramid, const at::Tensor& rois, const at::Tensor& levels,
                 at::Tensor& output) {
  const c10::cuda::CUDAGuard guard(output.device());
  const at::Tensor regions = rois.contiguous(), chosen = levels.contiguous();
  C10_CUDA_CHECK(PoolRois(PoolingOf(pyramid, regions, chosen, nullptr), TypeOf(output),
                          output.mutable_data_ptr(), c10::cuda::getCurrentCUDAStream()));
}

void PoolRegionsBackward(const Pyramid& pyramid, const at::Tensor& rois, const at::Tensor& levels,
                         const at::Tensor& grad_output,
                         std::array<at::Tensor, kPyramidLevels>& gradients) {
  const c10::cuda::CUDAGuard guard(grad_output.device());
  const at::Tensor regions = rois.contiguous(), chosen = levels.contiguous();
  const at::Tensor grads = grad_output.contiguous();
  C10_CUDA_CHECK(PoolRoisBackward(PoolingOf(pyramid, regions, chosen, &gradients), TypeOf(grads),
                                  grads.const_data_ptr(), c10::cuda::getCurrentCUDAStream()));
}

at::Tensor KeepSorted(const at::Tensor& boxes, const at::Tensor& classes, double threshold) {
  const c10::cuda::CUDAGuard guard(boxes.device());
  const int64_t count = boxes.size(0);
  if (count > kMostBoxes) throw std::runtime_error("over 320,000 boxes to suppress at once");
  at::Tensor keep = at::empty({count}, boxes.options().dtype(at::kBool));
  at::Tensor scratch = at::empty({SuppressionWords(count)}, boxes.options().dtype(at::kLong));
  C10_CUDA_CHECK(SuppressSorted(boxes.const_data_ptr<float>(), classes.const_data_ptr<int64_t>(),
                                count, static_cast<float>(threshold),
                                reinterpret_cast<uint64_t*>(scratch.mutable_data_ptr<int64_t>()),
                                keep.mutable_data_ptr<bool>(), c10::cuda::getCurrentCUDAStream()));
  return keep;
}

}  // namespace assay::train::cuda
