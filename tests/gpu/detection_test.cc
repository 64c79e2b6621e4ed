// ROI align and non-maximum suppression on the GPU against the processor's, which
// tests/integration/runners/train/detection_test.py holds against TorchVision's; and Faster R-CNN
// trained and run by cells.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "runners/train/models/detection/faster_rcnn.h"
#include "runners/train/models/detection/roi_ops.h"
#include "runners/train/trainer.h"
#include "tests/gpu/gpu_fixture.h"

namespace assay::train {
namespace {

using GpuDetection = GpuTest;

double Relative(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.cpu().to(at::kDouble), y = b.cpu().to(at::kDouble);
  return ((x - y).norm() / y.norm().clamp_min(1e-12)).item<double>();
}

at::Tensor RandomBoxes(int64_t count, double size) {
  const at::Tensor from = at::rand({count, 2}) * size * 0.9;
  return at::cat({from, from + at::rand({count, 2}).square() * size * 0.5 + 0.5}, 1);
}

struct Case {
  Pyramid pyramid;
  at::Tensor rois, levels, grad;

  at::Tensor Pooled() const { return PoolRegions(pyramid, rois, levels); }

  Case On(const at::Device& device, at::ScalarType type) const {
    Case moved{pyramid, rois.to(device), levels.to(device), grad.to(device, type)};
    for (at::Tensor& features : moved.pyramid.features) {
      features = features.detach().to(device, type).requires_grad_();
    }
    return moved;
  }
};

Case MakeCase(at::MemoryFormat layout) {
  at::manual_seed(11);
  const int64_t rois = 300, channels = 40;
  Case made;
  for (int i = 0; i < kPyramidLevels; ++i) {
    made.pyramid.features[i] =
        at::randn({3, channels, 64 >> i, 96 >> i}).contiguous(layout).requires_grad_();
    made.pyramid.scales[i] = 0.25 / static_cast<double>(1 << i);
  }
  made.rois = at::cat({at::randint(3, {rois, 1}).to(at::kFloat), RandomBoxes(rois, 300) - 8}, 1);
  made.levels = at::randint(kPyramidLevels, {rois}, at::kLong);
  made.grad = at::randn({rois, channels, kRoiSize, kRoiSize});
  return made;
}

TEST_F(GpuDetection, RoiAlignAndItsGradientAreTheProcessors) {
  for (const at::MemoryFormat layout :
       {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const Case cpu = MakeCase(layout);
    const at::Tensor expected = cpu.Pooled();
    expected.backward(cpu.grad);
    for (const auto& [type, tolerance] :
         {std::pair(at::kFloat, 1e-5), {at::kHalf, 2e-3}, {at::kBFloat16, 2e-2}}) {
      const Case gpu = cpu.On(at::kCUDA, type);
      const at::Tensor pooled = gpu.Pooled();
      EXPECT_EQ(pooled.scalar_type(), type);
      EXPECT_LT(Relative(pooled.detach(), expected.detach()), tolerance) << type;
      pooled.backward(gpu.grad);
      for (int i = 0; i < kPyramidLevels; ++i) {
        EXPECT_LT(Relative(gpu.pyramid.features[i].grad(), cpu.pyramid.features[i].grad()),
                  tolerance)
            << type << " level " << i;
      }
    }
  }
}

TEST_F(GpuDetection, NoRegionIsNoWork) {
  Case gpu = MakeCase(at::MemoryFormat::ChannelsLast).On(at::kCUDA, at::kFloat);
  gpu.rois = gpu.rois.slice(0, 0, 0);
  gpu.levels = gpu.levels.slice(0, 0, 0);
  EXPECT_EQ(gpu.Pooled().size(0), 0);
}

// 64 boxes make a word: sizes around that, and a size as in a step.
TEST_F(GpuDetection, SuppressionKeepsTheSameBoxesInTheSameOrder) {
  at::manual_seed(12);
  for (const int64_t count : {0, 1, 63, 64, 65, 129, 9000}) {
    const at::Tensor boxes = RandomBoxes(count, count > 1000 ? 900 : 100);
    // With ties, and some that are left out.
    const at::Tensor scores = at::rand({count}).mul(500).floor().div(500) - 0.05;
    const at::Tensor classes = at::randint(5, {count}, at::kLong);
    for (const double threshold : {0.3, 0.7}) {
      const at::Tensor expected = SuppressNonMaxima(boxes, scores, classes, threshold);
      const at::Tensor kept =
          SuppressNonMaxima(boxes.cuda(), scores.cuda(), classes.cuda(), threshold);
      EXPECT_TRUE(at::equal(kept.cpu(), expected)) << count << " boxes, " << threshold;
    }
  }
}

TEST_F(GpuDetection, TheModelIsTheProcessors) {
  const at::Tensor images = at::rand({2, 3, 200, 250});
  const at::Tensor labels = at::arange(2, at::kLong);
  at::Tensor losses[2];
  for (const bool gpu : {false, true}) {
    SetMath(Precision::kFp32);
    at::manual_seed(4);
    Placement placement;
    placement.device = gpu ? at::Device(at::kCUDA) : at::Device(at::kCPU);
    FasterRcnn model(placement, /*sample_at_random=*/false);
    const at::Tensor loss = model.Loss(images.to(placement.device), labels.to(placement.device));
    loss.backward();
    losses[gpu] = loss.detach().cpu();
  }
  EXPECT_NEAR((losses[1] / losses[0]).item<double>(), 1, 1e-3);
}

TEST_F(GpuDetection, CellsTrainAndInferAndSayWhatTheyFound) {
  for (const std::string precision : {"fp32", "amp-fp16"}) {
    for (const std::string mode : {"train", "infer"}) {
      CellFile cell = Cell(precision, 2);
      cell.spec.model = "fasterrcnn_resnet50_fpn";
      cell.spec.image = "256x320";
      cell.spec.mode = mode;
      cell.spec.stop = {.confidence = 0.01, .min_seconds = 0.2, .max_seconds = 0.5};
      const RunnerResult result = Run(cell);
      ASSERT_EQ(result.outcome, "ok") << precision << " " << mode << ": " << result.message;
      EXPECT_GT(result.fields["proposals_per_image"], 0);
      EXPECT_EQ(result.fields["parameters"], kFasterRcnnParameters);
      EXPECT_EQ(result.fields.contains("detections_per_image"), mode == "infer");
    }
  }
}

TEST_F(GpuDetection, LossFallsOverFiftyStepsInEveryPrecision) {
  for (const Precision precision :
       {Precision::kFp32, Precision::kTf32, Precision::kAmpFp16, Precision::kAmpBf16}) {
    SetMath(precision);
    at::manual_seed(6);
    Placement placement;
    placement.device = at::Device(at::kCUDA);
    FasterRcnn model(placement);
    Trainer trainer(model, precision, 1);
    const Batch batch{at::rand({2, 3, 256, 320}, at::TensorOptions(at::kFloat).device(at::kCUDA))
                          .contiguous(at::MemoryFormat::ChannelsLast),
                      at::arange(2, at::TensorOptions(at::kLong).device(at::kCUDA))};
    const double first = trainer.TrainStep(batch).loss.item<double>();
    double last = first;
    for (int step = 1; step < 50; ++step) last = trainer.TrainStep(batch).loss.item<double>();
    EXPECT_LT(last, 0.7 * first) << static_cast<int>(precision);
  }
}

}  // namespace
}  // namespace assay::train
