// The region proposal network of Faster R-CNN (Ren et al., 2015, section 3), as TorchVision's with
// its defaults. Boxes are computed in fp32 in every precision.
//
// Thread rule and owner: those of the model.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_REGION_PROPOSALS_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_REGION_PROPOSALS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "runners/train/models/detection/pyramid_backbone.h"

namespace assay::train {

using FeatureMaps = std::array<at::Tensor, kFeatureLevels>;

struct DetectionTarget {
  at::Tensor boxes;   // {M, 4} fp32, M at least 1
  at::Tensor labels;  // {M} int64, from 1
};

// Of images of one size: without padding `height` x `width`, with it what the backbone saw.
struct ImageExtent {
  int64_t height, width;
  int64_t padded_height, padded_width;
};

class RegionProposals {
 public:
  RegionProposals(ParameterSet& tensors, bool sample_at_random);

  struct Output {
    std::vector<at::Tensor> proposals;  // per image {P, 4} fp32, without gradient
    at::Tensor loss;                    // of both terms; undefined without targets
  };
  // `targets`: one an image, or none in inference. Waits for the device once an image.
  Output operator()(const FeatureMaps& maps, const ImageExtent& extent,
                    const std::vector<DetectionTarget>& targets);

 private:
  const at::Tensor& Anchors(const FeatureMaps& maps, const ImageExtent& extent);
  at::Tensor ProposalsOf(const at::Tensor& boxes, const at::Tensor& objectness,
                         const ImageExtent& extent) const;
  at::Tensor Loss(const at::Tensor& objectness, const at::Tensor& deltas,
                  const std::vector<DetectionTarget>& targets) const;

  BiasedConv2d conv_, objectness_, deltas_;
  const bool train_, at_random_;
  at::Tensor anchors_;                 // {A, 4}, of the last extent
  std::vector<int64_t> level_counts_;  // anchors a level
  std::array<int64_t, 2> anchors_of_{0, 0};
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_REGION_PROPOSALS_H_
