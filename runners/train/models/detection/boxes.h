// Arithmetic of boxes: overlap, the regression code of R-CNN, matching to ground truth, and
// sampling of what is trained on. As TorchVision's detection models; Girshick et al., "Rich feature
// hierarchies" (2014), appendix C, and Ren et al., "Faster R-CNN" (2015), section 3.1.
//
// Boxes are {K, 4} fp32: x1, y1, x2, y2 in pixels of the image. Nothing here waits for the device.
// Thread rule: pure but for the generator of random numbers.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_BOXES_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_BOXES_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace assay::train {

using BoxWeights = std::array<double, 4>;  // of dx, dy, dw, dh

// Intersection over union: {A, B}.
at::Tensor Overlaps(const at::Tensor& a, const at::Tensor& b);

// What a regressor should say of `boxes` {..., 4} to arrive at `targets` {..., 4}.
at::Tensor EncodeBoxes(const at::Tensor& targets, const at::Tensor& boxes,
                       const BoxWeights& weights);
// `deltas` {K, C, 4} applied to `boxes` {K, 4}: {K, C, 4}.
at::Tensor DecodeBoxes(const at::Tensor& deltas, const at::Tensor& boxes,
                       const BoxWeights& weights);
// To 0 to width and 0 to height.
at::Tensor ClipBoxes(const at::Tensor& boxes, int64_t height, int64_t width);
// {K} bool: both sides at least `least`.
at::Tensor LargerThan(const at::Tensor& boxes, double least);

inline constexpr int64_t kBelow = -1;    // overlaps no truth enough
inline constexpr int64_t kBetween = -2;  // neither this nor that

// For each of `boxes` the row of `truth` that it overlaps most, kBelow under `low`, kBetween from
// `low` to under `high`: {K} int64. With `keep_best` every truth has at least the boxes that
// overlap it most, however little.
at::Tensor MatchBoxes(const at::Tensor& truth, const at::Tensor& boxes, double high, double low,
                      bool keep_best);

// A fixed number of places for what is trained on; `used` says which are taken.
struct Sample {
  at::Tensor index;  // {count} int64
  at::Tensor used;   // {count} bool
};

// At most `count` of `labels` {K}: of those from 1 on at most `count` x `positives`, the rest of
// those that are 0. At random; or, for comparisons, the first of each.
Sample SampleLabels(const at::Tensor& labels, int64_t count, double positives, bool at_random);

// Smooth L1 with beta 1/9, without a sum: {..., 4}.
at::Tensor BoxLoss(const at::Tensor& predicted, const at::Tensor& targets);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_BOXES_H_
