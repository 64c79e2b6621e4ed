// Faster R-CNN with ResNet-50 and a feature pyramid, 91 classes: TorchVision's
// fasterrcnn_resnet50_fpn as its reference training has it (weights of the backbone given: batch
// normalisation frozen, three of five stages trained), with min_size and max_size those of the
// image, so that none is resized.
//
// Weights are drawn, and so are the targets: a label of the batch, from 0 to 90, names one of 91
// fixed sets of eight boxes with their classes, so that a batch has its truth on the device and a
// seed gives the same on every card. Shapes depend on the data (how many proposals survive), so
// that a step waits for the device and cannot be recorded.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_FASTER_RCNN_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_FASTER_RCNN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runners/train/models/detection/box_head.h"

namespace assay::train {

// Trained ones; with the frozen stem and first stage 41,755,286.
inline constexpr int64_t kFasterRcnnParameters = 41532886;

class FasterRcnn final : public Model {
 public:
  // `sample_at_random` false: the first anchors and proposals of each kind are trained on, for
  // comparisons.
  explicit FasterRcnn(const Placement& placement, bool sample_at_random = true);

  // {images} the sum of each image's scores; what it found is in Detect.
  at::Tensor Forward(const at::Tensor& images) override;
  std::vector<Detections> Detect(const at::Tensor& images);
  at::Tensor Loss(const at::Tensor& images, const at::Tensor& labels) override;
  // The same for targets of one's own.
  at::Tensor LossOf(const at::Tensor& images, const std::vector<DetectionTarget>& targets);
  int64_t classes() const override { return kTargetSets; }
  // proposals_per_image, and in inference detections_per_image: means over all passes.
  std::vector<std::pair<std::string, double>> Figures() const override;

  // Set `label` for an image of this size.
  DetectionTarget TargetOf(int64_t label, int64_t height, int64_t width) const;

  static constexpr int64_t kClasses = 91;  // with the background
  static constexpr int64_t kTargetSets = 91;

 private:
  FeatureMaps Maps(const at::Tensor& images) const;
  void NoteProposals(const std::vector<at::Tensor>& proposals);

  const PyramidBackbone backbone_;
  RegionProposals proposals_;
  const BoxHead head_;
  at::Tensor mean_, deviation_;              // {1, 3, 1, 1}
  at::Tensor target_boxes_, target_labels_;  // {sets, 8, 4} in shares of the image; {sets, 8}
  int64_t images_ = 0, proposal_count_ = 0, detection_count_ = 0;
};

std::unique_ptr<Model> MakeFasterRcnn(const Placement& placement);

// Of convolutions and matrix products, for 1,000 proposals in inference and 512 regions in
// training, where neither the stem nor the first stage has a backward pass.
int64_t FasterRcnnForwardFlops(int64_t height, int64_t width);
int64_t FasterRcnnTrainFlops(int64_t height, int64_t width);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_FASTER_RCNN_H_
