// The second stage of Faster R-CNN: what is in each proposal, and where exactly. As TorchVision's
// RoIHeads with its defaults.
//
// Thread rule and owner: those of the model.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_BOX_HEAD_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_BOX_HEAD_H_

#include <vector>

#include "runners/train/models/detection/region_proposals.h"
#include "runners/train/models/layers.h"

namespace assay::train {

// Of one image, at most 100, the best first.
struct Detections {
  at::Tensor boxes;   // {D, 4} fp32
  at::Tensor scores;  // {D} fp32
  at::Tensor labels;  // {D} int64, from 1
};

class BoxHead {
 public:
  // `classes` with the background, which is 0.
  BoxHead(ParameterSet& tensors, int64_t classes, bool sample_at_random);

  // Of both terms, over 512 regions an image. Does not wait for the device.
  at::Tensor Loss(const FeatureMaps& maps, const std::vector<at::Tensor>& proposals,
                  const ImageExtent& extent, const std::vector<DetectionTarget>& targets) const;
  // Waits for the device twice an image.
  std::vector<Detections> Detect(const FeatureMaps& maps, const std::vector<at::Tensor>& proposals,
                                 const ImageExtent& extent) const;

 private:
  struct Predictions {
    at::Tensor logits;  // {K, classes} fp32
    at::Tensor deltas;  // {K, classes, 4} fp32
  };
  Predictions Predict(const FeatureMaps& maps, const std::vector<at::Tensor>& boxes,
                      const ImageExtent& extent) const;

  const int64_t classes_;
  const bool at_random_;
  Linear fc6_, fc7_, scores_, deltas_;
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_BOX_HEAD_H_
