#include "runners/train/models/detection/box_head.h"

#include <ATen/ATen.h>

#include <cmath>

#include "runners/train/models/detection/boxes.h"
#include "runners/train/models/detection/roi_ops.h"

namespace assay::train {
namespace {

constexpr int64_t kHidden = 1024;
constexpr BoxWeights kRoiWeights = {10, 10, 5, 5};
constexpr double kRoiHigh = 0.5;  // of overlap with a truth; under it background
constexpr int64_t kRoiSampled = 512;
constexpr double kRoiPositives = 0.25;
constexpr double kLeastScore = 0.05, kRoiLeastSide = 1e-2, kRoiSuppressAbove = 0.5;
constexpr int64_t kMostDetections = 100;
// A box of this side is read from the level of stride 16: equation 1 of Lin et al. (2017).
constexpr double kCanonicalSide = 224, kCanonicalLevel = 4;
constexpr int64_t kFirstLevel = 2, kLastLevel = 5;  // log2 of the strides

at::Tensor LevelsOf(const at::Tensor& boxes) {
  const at::Tensor side =
      ((boxes.select(1, 2) - boxes.select(1, 0)) * (boxes.select(1, 3) - boxes.select(1, 1)))
          .sqrt();
  const at::Tensor level = at::floor(kCanonicalLevel + at::log2(side / kCanonicalSide) + 1e-6);
  return level.clamp(kFirstLevel, kLastLevel).to(at::kLong) - kFirstLevel;
}

// The scale is a power of two, whatever padding made of the size.
double ScaleOf(int64_t feature, int64_t image) {
  return std::exp2(
      std::round(std::log2(static_cast<double>(feature) / static_cast<double>(image))));
}

}  // namespace

BoxHead::BoxHead(ParameterSet& tensors, int64_t classes, bool sample_at_random)
    : classes_(classes),
      at_random_(sample_at_random),
      fc6_(tensors, "roi_heads.box_head.fc6", kPyramidChannels * kRoiSize * kRoiSize, kHidden),
      fc7_(tensors, "roi_heads.box_head.fc7", kHidden, kHidden),
      scores_(tensors, "roi_heads.box_predictor.cls_score", kHidden, classes),
      deltas_(tensors, "roi_heads.box_predictor.bbox_pred", kHidden, classes * 4) {}

BoxHead::Predictions BoxHead::Predict(const FeatureMaps& maps, const std::vector<at::Tensor>& boxes,
                                      const ImageExtent& extent) const {
  Pyramid pyramid;
  for (int level = 0; level < kPyramidLevels; ++level) {
    pyramid.features[level] = maps[level];
    pyramid.scales[level] = ScaleOf(maps[level].size(2), extent.height);
  }
  std::vector<at::Tensor> rois;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const at::Tensor image =
        at::full({boxes[i].size(0), 1}, static_cast<double>(i), boxes[i].options());
    rois.push_back(at::cat({image, boxes[i]}, 1));
  }
  at::Tensor x = PoolRegions(pyramid, at::cat(rois), LevelsOf(at::cat(boxes)));
  x = x.flatten(1);
  x = fc6_(x);
  at::relu_(x);
  x = fc7_(x);
  at::relu_(x);
  return {scores_(x).to(at::kFloat), deltas_(x).to(at::kFloat).view({-1, classes_, 4})};
}

at::Tensor BoxHead::Loss(const FeatureMaps& maps, const std::vector<at::Tensor>& proposals,
                         const ImageExtent& extent,
                         const std::vector<DetectionTarget>& targets) const {
  std::vector<at::Tensor> boxes, labels, codes, used;
  for (size_t i = 0; i < targets.size(); ++i) {
    const at::Tensor candidates = at::cat({proposals[i], targets[i].boxes});
    const at::Tensor match =
        MatchBoxes(targets[i].boxes, candidates, kRoiHigh, kRoiHigh, /*keep_best=*/false);
    const at::Tensor row = match.clamp_min(0);
    const at::Tensor label = targets[i].labels.index_select(0, row) * match.ge(0);
    const Sample sample = SampleLabels(label, kRoiSampled, kRoiPositives, at_random_);
    const at::Tensor chosen = candidates.index_select(0, sample.index);
    const at::Tensor truth = targets[i].boxes.index_select(0, row.index_select(0, sample.index));
    boxes.push_back(chosen);
    labels.push_back(label.index_select(0, sample.index));
    codes.push_back(EncodeBoxes(truth, chosen, kRoiWeights));
    used.push_back(sample.used);
  }
  const Predictions predicted = Predict(maps, boxes, extent);
  const at::Tensor label = at::cat(labels), taken = at::cat(used);
  const at::Tensor entropy =
      at::cross_entropy_loss(predicted.logits, label, {}, at::Reduction::None);
  const at::Tensor own = label.view({-1, 1, 1}).expand({-1, 1, 4});
  const at::Tensor box = BoxLoss(predicted.deltas.gather(1, own).squeeze(1), at::cat(codes));
  const at::Tensor positive = taken.logical_and(label.gt(0)).unsqueeze(1);
  const at::Tensor sum = at::where(taken, entropy, at::zeros_like(entropy)).sum() +
                         at::where(positive, box, at::zeros_like(box)).sum();
  return sum / taken.sum();
}

std::vector<Detections> BoxHead::Detect(const FeatureMaps& maps,
                                        const std::vector<at::Tensor>& proposals,
                                        const ImageExtent& extent) const {
  const Predictions predicted = Predict(maps, proposals, extent);
  const at::Tensor scores = at::softmax(predicted.logits, 1);
  const at::Tensor decoded = DecodeBoxes(predicted.deltas, at::cat(proposals), kRoiWeights);
  std::vector<Detections> all;
  int64_t offset = 0;
  for (const at::Tensor& of_image : proposals) {
    const int64_t count = of_image.size(0);
    // Without the background; each class of a proposal by itself.
    const at::Tensor score = scores.narrow(0, offset, count).slice(1, 1).reshape(-1);
    const at::Tensor box =
        ClipBoxes(decoded.narrow(0, offset, count).slice(1, 1), extent.height, extent.width)
            .reshape({-1, 4});
    offset += count;
    const at::Tensor index =
        score.gt(kLeastScore).logical_and_(LargerThan(box, kRoiLeastSide)).nonzero().squeeze(1);
    const at::Tensor label = index.remainder(classes_ - 1) + 1;
    const at::Tensor candidates = box.index_select(0, index);
    const at::Tensor candidate_scores = score.index_select(0, index);
    const at::Tensor keep =
        SuppressNonMaxima(candidates, candidate_scores, label, kRoiSuppressAbove)
            .slice(0, 0, kMostDetections);
    all.push_back({candidates.index_select(0, keep), candidate_scores.index_select(0, keep),
                   label.index_select(0, keep)});
  }
  return all;
}

}  // namespace assay::train
