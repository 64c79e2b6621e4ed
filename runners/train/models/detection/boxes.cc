#include "runners/train/models/detection/boxes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace assay::train {
namespace {

// exp() of more would be no box: TorchVision's bound.
const double kMostLogScale = std::log(1000.0 / 16);

struct Centers {
  at::Tensor x, y, width, height;
};

Centers CentersOf(const at::Tensor& boxes) {
  const at::Tensor width = boxes.select(-1, 2) - boxes.select(-1, 0);
  const at::Tensor height = boxes.select(-1, 3) - boxes.select(-1, 1);
  return {boxes.select(-1, 0) + 0.5 * width, boxes.select(-1, 1) + 0.5 * height, width, height};
}

at::Tensor Areas(const at::Tensor& boxes) {
  return (boxes.select(1, 2) - boxes.select(1, 0)) * (boxes.select(1, 3) - boxes.select(1, 1));
}

}  // namespace

at::Tensor Overlaps(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor from = at::max(a.unsqueeze(1).slice(2, 0, 2), b.unsqueeze(0).slice(2, 0, 2));
  const at::Tensor to = at::min(a.unsqueeze(1).slice(2, 2, 4), b.unsqueeze(0).slice(2, 2, 4));
  const at::Tensor sides = (to - from).clamp_min_(0);
  const at::Tensor both = sides.select(2, 0) * sides.select(2, 1);
  return both / (Areas(a).unsqueeze(1) + Areas(b).unsqueeze(0) - both);
}

at::Tensor EncodeBoxes(const at::Tensor& targets, const at::Tensor& boxes,
                       const BoxWeights& weights) {
  const Centers from = CentersOf(boxes), to = CentersOf(targets);
  return at::stack(
      {weights[0] * (to.x - from.x) / from.width, weights[1] * (to.y - from.y) / from.height,
       weights[2] * at::log(to.width / from.width), weights[3] * at::log(to.height / from.height)},
      -1);
}

at::Tensor DecodeBoxes(const at::Tensor& deltas, const at::Tensor& boxes,
                       const BoxWeights& weights) {
  const Centers from = CentersOf(boxes.unsqueeze(1));
  const at::Tensor x = deltas.select(2, 0) / weights[0] * from.width + from.x;
  const at::Tensor y = deltas.select(2, 1) / weights[1] * from.height + from.y;
  const at::Tensor half_width =
      0.5 * at::exp((deltas.select(2, 2) / weights[2]).clamp_max_(kMostLogScale)) * from.width;
  const at::Tensor half_height =
      0.5 * at::exp((deltas.select(2, 3) / weights[3]).clamp_max_(kMostLogScale)) * from.height;
  return at::stack({x - half_width, y - half_height, x + half_width, y + half_height}, 2);
}

at::Tensor ClipBoxes(const at::Tensor& boxes, int64_t height, int64_t width) {
  const at::Tensor x = boxes.slice(-1, 0, 4, 2).clamp(0, width);
  const at::Tensor y = boxes.slice(-1, 1, 4, 2).clamp(0, height);
  return at::stack({x, y}, -1).flatten(-2);
}

at::Tensor LargerThan(const at::Tensor& boxes, double least) {
  const Centers box = CentersOf(boxes);
  return box.width.ge(least).logical_and_(box.height.ge(least));
}

at::Tensor MatchBoxes(const at::Tensor& truth, const at::Tensor& boxes, double high, double low,
                      bool keep_best) {
  const at::Tensor overlaps = Overlaps(truth, boxes);
  const auto [best, match] = overlaps.max(0);
  at::Tensor result = at::where(best.lt(high), at::full({}, kBetween, match.options()), match);
  result = at::where(best.lt(low), at::full({}, kBelow, match.options()), result);
  if (!keep_best) return result;
  const at::Tensor best_of_truth = overlaps.amax(1, /*keepdim=*/true);
  return at::where(overlaps.eq(best_of_truth).any(0), match, result);
}

Sample SampleLabels(const at::Tensor& labels, int64_t count, double positives, bool at_random) {
  const int64_t size = labels.size(0);
  const int64_t most = std::min(size, count);
  const int64_t most_positive =
      std::min(size, static_cast<int64_t>(static_cast<double>(count) * positives));
  const auto options = labels.options().dtype(at::kFloat);
  // Above zero, so that -1 is behind all of them.
  const at::Tensor key =
      at_random ? at::rand({size}, options).add_(0.5) : at::arange(size, 0, -1, options);
  const at::Tensor none = at::full({}, -1.0, options);
  const auto [positive_key, positive] = at::topk(at::where(labels.ge(1), key, none), most_positive);
  const auto [negative_key, negative] = at::topk(at::where(labels.eq(0), key, none), most);
  const at::Tensor is_positive = positive_key.gt(0);
  const at::Tensor rank = at::arange(most, labels.options().dtype(at::kLong));
  const at::Tensor is_negative =
      negative_key.gt(0).logical_and_(rank.lt(count - is_positive.sum()));
  const at::Tensor index = at::cat({positive, negative});
  const at::Tensor used = at::cat({is_positive, is_negative});
  // At most `most` are used: these come first.
  const auto [taken, place] = at::topk(used.to(at::kFloat), most);
  return {index.index_select(0, place), taken.gt(0)};
}

at::Tensor BoxLoss(const at::Tensor& predicted, const at::Tensor& targets) {
  return at::smooth_l1_loss(predicted, targets, at::Reduction::None, 1.0 / 9);
}

}  // namespace assay::train
