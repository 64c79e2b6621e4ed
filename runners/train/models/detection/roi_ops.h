// The two operators of detection that LibTorch lacks: ROI align over a pyramid, and non-maximum
// suppression. Written here, since the wheel of TorchVision has them in a library that needs a
// Python interpreter (its _C.so is linked with libtorch_python); tests hold them against the
// wheel's.
//
// On the processor, and on a GPU where this runner was built with CUDA. Thread rule: one thread.
// Errors: LibTorch's exceptions.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_ROI_OPS_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_ROI_OPS_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace assay::train {

inline constexpr int kPyramidLevels = 4;  // that regions are read from
inline constexpr int kRoiSize = 7;        // bins a side
inline constexpr int kRoiSamples = 2;     // a bin and side

struct Pyramid {
  std::array<at::Tensor, kPyramidLevels> features;  // {N, C, H, W} each, of one type
  std::array<double, kPyramidLevels> scales;        // feature over image size
};

// Of `rois` {K, 5} fp32 (image index, x1, y1, x2, y2), each read from the level that `levels` {K}
// int64 names, the mean of each bin's samples: {K, C, 7, 7}, contiguous, of the features' type.
// Computed in fp32. Differentiable in the features alone.
at::Tensor PoolRegions(const Pyramid& pyramid, const at::Tensor& rois, const at::Tensor& levels);

// Indices of the boxes {K, 4} fp32 that no box of the same class with a higher score overlaps by
// more than `threshold` (intersection over union), in falling order of scores {K} fp32; of equal
// ones the first. `classes` {K} int64. A box whose score is below zero is left out and suppresses
// none. Waits for the device.
at::Tensor SuppressNonMaxima(const at::Tensor& boxes, const at::Tensor& scores,
                             const at::Tensor& classes, double threshold);

// On a GPU; a runner without CUDA throws std::runtime_error.
namespace cuda {
// `output` {K, C, 7, 7} contiguous.
void PoolRegions(const Pyramid& pyramid, const at::Tensor& rois, const at::Tensor& levels,
                 at::Tensor& output);
// Adds to `gradients`, fp32 with the strides of the features.
void PoolRegionsBackward(const Pyramid& pyramid, const at::Tensor& rois, const at::Tensor& levels,
                         const at::Tensor& grad_output,
                         std::array<at::Tensor, kPyramidLevels>& gradients);
// Of boxes that are sorted: which stay, {K} bool.
at::Tensor KeepSorted(const at::Tensor& boxes, const at::Tensor& classes, double threshold);
}  // namespace cuda

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_ROI_OPS_H_
