#include "runners/train/models/detection/region_proposals.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "runners/train/models/detection/boxes.h"
#include "runners/train/models/detection/roi_ops.h"

namespace assay::train {
namespace {

constexpr std::array<double, kFeatureLevels> kAnchorSizes = {32, 64, 128, 256, 512};
constexpr std::array<double, 3> kAnchorRatios = {0.5, 1.0, 2.0};  // height over width
constexpr int64_t kAnchorsAPlace = 3;
constexpr BoxWeights kRpnWeights = {1, 1, 1, 1};
// Before and after suppression, a level and an image; in inference half as many.
constexpr int64_t kMostProposals = 2000;
constexpr double kRpnSuppressAbove = 0.7;
constexpr double kRpnLeastSide = 1e-3;
constexpr double kRpnHigh = 0.7, kRpnLow = 0.3;
constexpr int64_t kRpnSampled = 256;
constexpr double kRpnPositives = 0.5;

at::Tensor HeadWeight(ParameterSet& tensors, const std::string& name, int64_t out, int64_t kernel) {
  return tensors.Normal(name + ".weight", {out, kPyramidChannels, kernel, kernel}, 0.01);
}

// {3, 4} around zero.
at::Tensor CellAnchors(double size) {
  std::vector<float> sides;
  for (const double ratio : kAnchorRatios) {
    const float root = std::sqrt(static_cast<float>(ratio));
    const float width = 1 / root * static_cast<float>(size),
                height = root * static_cast<float>(size);
    for (const float side : {-width, -height, width, height}) sides.push_back(side / 2);
  }
  return at::tensor(sides).view({kAnchorsAPlace, 4}).round();
}

}  // namespace

RegionProposals::RegionProposals(ParameterSet& tensors, bool sample_at_random)
    : conv_(tensors, "rpn.head.conv.0.0",
            HeadWeight(tensors, "rpn.head.conv.0.0", kPyramidChannels, 3)),
      objectness_(tensors, "rpn.head.cls_logits",
                  HeadWeight(tensors, "rpn.head.cls_logits", kAnchorsAPlace, 1)),
      deltas_(tensors, "rpn.head.bbox_pred",
              HeadWeight(tensors, "rpn.head.bbox_pred", kAnchorsAPlace * 4, 1)),
      train_(tensors.placement().train),
      at_random_(sample_at_random) {}

const at::Tensor& RegionProposals::Anchors(const FeatureMaps& maps, const ImageExtent& extent) {
  if (anchors_of_ == std::array{extent.padded_height, extent.padded_width}) return anchors_;
  std::vector<at::Tensor> all;
  level_counts_.clear();
  for (int level = 0; level < kFeatureLevels; ++level) {
    const int64_t rows = maps[level].size(2), columns = maps[level].size(3);
    const at::Tensor y = at::arange(rows, at::kFloat) * (extent.padded_height / rows);
    const at::Tensor x = at::arange(columns, at::kFloat) * (extent.padded_width / columns);
    const at::Tensor place_y = y.view({-1, 1}).expand({rows, columns}).reshape(-1);
    const at::Tensor place_x = x.view({1, -1}).expand({rows, columns}).reshape(-1);
    const at::Tensor shift = at::stack({place_x, place_y, place_x, place_y}, 1).unsqueeze(1);
    all.push_back((shift + CellAnchors(kAnchorSizes[level]).unsqueeze(0)).reshape({-1, 4}));
    level_counts_.push_back(all.back().size(0));
  }
  anchors_ = at::cat(all).to(maps[0].device());
  anchors_of_ = {extent.padded_height, extent.padded_width};
  return anchors_;
}

at::Tensor RegionProposals::ProposalsOf(const at::Tensor& boxes, const at::Tensor& objectness,
                                        const ImageExtent& extent) const {
  const int64_t most = train_ ? kMostProposals : kMostProposals / 2;
  std::vector<at::Tensor> best, levels;
  int64_t offset = 0;
  for (int level = 0; level < kFeatureLevels; ++level) {
    const int64_t count = level_counts_[level];
    const auto [score, index] = objectness.narrow(0, offset, count).topk(std::min(most, count));
    best.push_back(index + offset);
    levels.push_back(at::full_like(index, level));
    offset += count;
  }
  const at::Tensor index = at::cat(best);
  const at::Tensor chosen = ClipBoxes(boxes.index_select(0, index), extent.height, extent.width);
  const at::Tensor score = objectness.index_select(0, index).sigmoid();
  // Below zero is left out (roi_ops.h).
  const at::Tensor sound =
      at::where(LargerThan(chosen, kRpnLeastSide), score, at::full({}, -1.0, score.options()));
  const at::Tensor keep = SuppressNonMaxima(chosen, sound, at::cat(levels), kRpnSuppressAbove);
  return chosen.index_select(0, keep.slice(0, 0, most));
}

at::Tensor RegionProposals::Loss(const at::Tensor& objectness, const at::Tensor& deltas,
                                 const std::vector<DetectionTarget>& targets) const {
  at::Tensor box_loss, objectness_loss, sampled;
  const auto add = [](at::Tensor& sum, const at::Tensor& term) {
    sum = sum.defined() ? sum + term : term;
  };
  for (size_t i = 0; i < targets.size(); ++i) {
    const at::Tensor match =
        MatchBoxes(targets[i].boxes, anchors_, kRpnHigh, kRpnLow, /*keep_best=*/true);
    // 1 for a truth, 0 for background, -1 for neither.
    const at::Tensor labels = match.ge(0).to(at::kFloat) - match.eq(kBetween).to(at::kFloat);
    const Sample sample = SampleLabels(labels, kRpnSampled, kRpnPositives, at_random_);
    const at::Tensor label = labels.index_select(0, sample.index);
    const at::Tensor truth =
        targets[i].boxes.index_select(0, match.index_select(0, sample.index).clamp_min(0));
    const at::Tensor code = EncodeBoxes(truth, anchors_.index_select(0, sample.index), kRpnWeights);
    const at::Tensor positive = sample.used.logical_and(label.ge(1)).unsqueeze(1);
    const auto row = static_cast<int64_t>(i);
    // Not a product: a place that is not used may hold what is not finite.
    const at::Tensor box = BoxLoss(deltas.select(0, row).index_select(0, sample.index), code);
    add(box_loss, at::where(positive, box, at::zeros_like(box)).sum());
    const at::Tensor score = objectness.select(0, row).index_select(0, sample.index);
    const at::Tensor entropy = at::binary_cross_entropy_with_logits(score, label.clamp_min(0), {},
                                                                    {}, at::Reduction::None);
    add(objectness_loss, at::where(sample.used, entropy, at::zeros_like(entropy)).sum());
    add(sampled, sample.used.sum());
  }
  return (box_loss + objectness_loss) / sampled;
}

RegionProposals::Output RegionProposals::operator()(const FeatureMaps& maps,
                                                    const ImageExtent& extent,
                                                    const std::vector<DetectionTarget>& targets) {
  const int64_t images = maps[0].size(0);
  std::vector<at::Tensor> scores, codes;
  for (const at::Tensor& map : maps) {
    at::Tensor x = conv_(map);
    at::relu_(x);
    scores.push_back(objectness_(x).permute({0, 2, 3, 1}).reshape({images, -1}));
    codes.push_back(deltas_(x).permute({0, 2, 3, 1}).reshape({images, -1, 4}));
  }
  const at::Tensor objectness = at::cat(scores, 1).to(at::kFloat);
  const at::Tensor deltas = at::cat(codes, 1).to(at::kFloat);
  const at::Tensor& anchors = Anchors(maps, extent);
  Output output;
  {
    const at::Tensor plain = deltas.detach(), score = objectness.detach();
    for (int64_t i = 0; i < images; ++i) {
      const at::Tensor boxes =
          DecodeBoxes(plain.select(0, i).unsqueeze(1), anchors, kRpnWeights).squeeze(1);
      output.proposals.push_back(ProposalsOf(boxes, score.select(0, i), extent));
    }
  }
  if (!targets.empty()) output.loss = Loss(objectness, deltas, targets);
  return output;
}

}  // namespace assay::train
