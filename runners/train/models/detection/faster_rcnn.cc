#include "runners/train/models/detection/faster_rcnn.h"

#include <ATen/ATen.h>

#include <array>

namespace assay::train {
namespace {

constexpr int64_t kTargetBoxes = 8;
constexpr int64_t kPadTo = 32;

int64_t Padded(int64_t size) { return (size + kPadTo - 1) / kPadTo * kPadTo; }

ImageExtent ExtentOf(const at::Tensor& images) {
  const int64_t height = images.size(2), width = images.size(3);
  return {height, width, Padded(height), Padded(width)};
}

// ImageNet's, as every TorchVision model of it.
at::Tensor PerChannel(const std::vector<float>& values, const c10::Device& device) {
  return at::tensor(values).view({1, 3, 1, 1}).to(device);
}

}  // namespace

FasterRcnn::FasterRcnn(const Placement& placement, bool sample_at_random)
    : Model(placement),
      backbone_(tensors_),
      proposals_(tensors_, sample_at_random),
      head_(tensors_, kClasses, sample_at_random),
      mean_(PerChannel({0.485f, 0.456f, 0.406f}, placement.device)),
      deviation_(PerChannel({0.229f, 0.224f, 0.225f}, placement.device)) {
  // Sides from a tenth to a half of the image's, all of it inside.
  const at::Tensor side = at::rand({kTargetSets, kTargetBoxes, 2}) * 0.4 + 0.1;
  const at::Tensor from = at::rand({kTargetSets, kTargetBoxes, 2}) * (1 - side);
  target_boxes_ = at::cat({from, from + side}, 2).to(placement.device);
  target_labels_ =
      at::randint(1, kClasses, {kTargetSets, kTargetBoxes}, at::kLong).to(placement.device);
}

FeatureMaps FasterRcnn::Maps(const at::Tensor& images) const {
  const ImageExtent extent = ExtentOf(images);
  at::Tensor x = (images - mean_) / deviation_;
  if (extent.padded_height != extent.height || extent.padded_width != extent.width) {
    x = at::constant_pad_nd(
        x, {0, extent.padded_width - extent.width, 0, extent.padded_height - extent.height});
    x = x.contiguous(tensors_.placement().layout);
  }
  return backbone_(x);
}

void FasterRcnn::NoteProposals(const std::vector<at::Tensor>& proposals) {
  images_ += static_cast<int64_t>(proposals.size());
  for (const at::Tensor& of_image : proposals) proposal_count_ += of_image.size(0);
}

std::vector<Detections> FasterRcnn::Detect(const at::Tensor& images) {
  const FeatureMaps maps = Maps(images);
  const ImageExtent extent = ExtentOf(images);
  const RegionProposals::Output regions = proposals_(maps, extent, {});
  NoteProposals(regions.proposals);
  std::vector<Detections> found = head_.Detect(maps, regions.proposals, extent);
  for (const Detections& of_image : found) detection_count_ += of_image.scores.size(0);
  return found;
}

at::Tensor FasterRcnn::Forward(const at::Tensor& images) {
  std::vector<at::Tensor> sums;
  for (const Detections& of_image : Detect(images)) sums.push_back(of_image.scores.sum());
  return at::stack(sums);
}

DetectionTarget FasterRcnn::TargetOf(int64_t label, int64_t height, int64_t width) const {
  const at::Tensor size =
      at::tensor(std::vector<float>{static_cast<float>(width), static_cast<float>(height),
                                    static_cast<float>(width), static_cast<float>(height)})
          .to(target_boxes_.device());
  return {target_boxes_[label] * size, target_labels_[label]};
}

at::Tensor FasterRcnn::Loss(const at::Tensor& images, const at::Tensor& labels) {
  const int64_t height = images.size(2), width = images.size(3);
  // The factor of each side: x, y, x, y.
  at::Tensor boxes = target_boxes_.index_select(0, labels);
  boxes = at::stack({boxes.select(2, 0) * width, boxes.select(2, 1) * height,
                     boxes.select(2, 2) * width, boxes.select(2, 3) * height},
                    2);
  const at::Tensor classes = target_labels_.index_select(0, labels);
  std::vector<DetectionTarget> targets;
  for (int64_t i = 0; i < images.size(0); ++i) {
    targets.push_back({boxes.select(0, i), classes.select(0, i)});
  }
  return LossOf(images, targets);
}

at::Tensor FasterRcnn::LossOf(const at::Tensor& images,
                              const std::vector<DetectionTarget>& targets) {
  const FeatureMaps maps = Maps(images);
  const ImageExtent extent = ExtentOf(images);
  const RegionProposals::Output regions = proposals_(maps, extent, targets);
  NoteProposals(regions.proposals);
  return regions.loss + head_.Loss(maps, regions.proposals, extent, targets);
}

std::vector<std::pair<std::string, double>> FasterRcnn::Figures() const {
  if (images_ == 0) return {};
  const auto per_image = [&](int64_t count) {
    return static_cast<double>(count) / static_cast<double>(images_);
  };
  std::vector<std::pair<std::string, double>> figures = {
      {"proposals_per_image", per_image(proposal_count_)}};
  if (!tensors_.placement().train) {
    figures.emplace_back("detections_per_image", per_image(detection_count_));
  }
  return figures;
}

std::unique_ptr<Model> MakeFasterRcnn(const Placement& placement) {
  return std::make_unique<FasterRcnn>(placement);
}

namespace {

int64_t Half(int64_t size) { return (size + 1) / 2; }

struct Macs {
  int64_t frozen = 0;   // stem and first stage
  int64_t entry = 0;    // of the first trained stage, on what is frozen: no gradient of the input
  int64_t trained = 0;  // the rest of the backbone, pyramid and proposal head
};

// Of convolutions, an image.
Macs ConvolutionMacs(int64_t height, int64_t width) {
  constexpr std::array<int64_t, 4> kBlocks = {3, 4, 6, 3};
  Macs macs;
  int64_t h = Half(Padded(height)), w = Half(Padded(width));
  macs.frozen += h * w * 64 * 3 * 49;
  h = Half(h), w = Half(w);
  int64_t in = 64;
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t inner = int64_t{64} << stage, out = inner * 4;
    for (int64_t block = 0; block < kBlocks[stage]; ++block) {
      const int64_t before = h * w;
      if (stage > 0 && block == 0) h = Half(h), w = Half(w);
      const int64_t first = before * in * inner + (block == 0 ? h * w * in * out : 0);
      const int64_t rest = h * w * (inner * inner * 9 + inner * out);
      if (stage == 0) {
        macs.frozen += first + rest;
      } else {
        (stage == 1 && block == 0 ? macs.entry : macs.trained) += first;
        macs.trained += rest;
      }
      in = out;
    }
    // The pyramid's two convolutions, of which the first reads frozen maps at the first stage.
    (stage == 0 ? macs.entry : macs.trained) += h * w * out * kPyramidChannels;
    macs.trained += h * w * kPyramidChannels * kPyramidChannels * 9;
    macs.trained += h * w * kPyramidChannels * (kPyramidChannels * 9 + 15);
  }
  h = Half(h), w = Half(w);
  macs.trained += h * w * kPyramidChannels * (kPyramidChannels * 9 + 15);
  return macs;
}

constexpr int64_t kMacsARegion =
    kPyramidChannels * 49 * 1024 + int64_t{1024} * 1024 + 1024 * FasterRcnn::kClasses * 5;

}  // namespace

int64_t FasterRcnnForwardFlops(int64_t height, int64_t width) {
  const Macs macs = ConvolutionMacs(height, width);
  return 2 * (macs.frozen + macs.entry + macs.trained + 1000 * kMacsARegion);
}

int64_t FasterRcnnTrainFlops(int64_t height, int64_t width) {
  const Macs macs = ConvolutionMacs(height, width);
  return 2 * (macs.frozen + 2 * macs.entry + 3 * macs.trained + int64_t{3} * 512 * kMacsARegion);
}

}  // namespace assay::train
