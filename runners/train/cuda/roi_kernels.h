// The kernels of ROI align and non-maximum suppression, without a header of LibTorch: nvcc compiles
// them with CUDA's alone (runners/train/models/detection/roi_ops.h says what they compute).
//
// All pointers are the device's; nothing waits.
#ifndef ASSAY_RUNNERS_TRAIN_CUDA_ROI_KERNELS_H_
#define ASSAY_RUNNERS_TRAIN_CUDA_ROI_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::train {

enum class RoiType { kFloat, kHalf, kBfloat16 };

struct RoiLevel {
  const void* features;
  float* gradient;  // of the features' strides; null in a forward pass
  int64_t image_stride, channel_stride, row_stride, column_stride;
  int height, width;
  float scale;
};

struct RoiPooling {
  RoiLevel levels[4];
  const float* rois;        // {count, 5}
  const int64_t* level_of;  // {count}
  int64_t count;
  int channels, size, samples;
};

// `output` {count, channels, size, size} of `type`, as the features.
cudaError_t PoolRois(const RoiPooling& pooling, RoiType type, void* output, cudaStream_t stream);
// Adds to each level's gradient. The order of the sums, and with it their last bits, differs from
// one call to the next.
cudaError_t PoolRoisBackward(const RoiPooling& pooling, RoiType type, const void* grad_output,
                             cudaStream_t stream);

// Words of SuppressSorted's scratch.
inline int64_t SuppressionWords(int64_t count) { return count * ((count + 63) / 64); }

// `boxes` {count, 4} and `classes` in falling order of scores; `keep` {count} becomes 0 or 1.
cudaError_t SuppressSorted(const float* boxes, const int64_t* classes, int64_t count,
                           float threshold, uint64_t* scratch, bool* keep, cudaStream_t stream);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_CUDA_ROI_KERNELS_H_
