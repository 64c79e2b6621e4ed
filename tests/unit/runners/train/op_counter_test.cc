#include "runners/train/op_counter.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "runners/train/models/detection/faster_rcnn.h"
#include "runners/train/models/registry.h"
#include "runners/train/trainer.h"
#include "tests/unit/runners/train/tiny_model.h"

namespace assay::train {
namespace {

constexpr int64_t kFloat = 4;

template <typename Work>
OpCounts CountsOf(const Work& work) {
  const OpCounter counter;
  work();
  return counter.counts();
}

OpCounts CountsOfStep(Model& model, Precision precision, int64_t batch, ImageSize image) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  SyntheticData data(*device, {.batch = batch,
                               .image = image,
                               .classes = model.classes(),
                               .layout = c10::MemoryFormat::ChannelsLast});
  Trainer trainer(model, precision, 1);
  return CountsOf([&] { trainer.Step(data.Next()); });
}

TEST(OpCounter, ProductsAreTwiceTheirMultiplications) {
  const at::Tensor a = at::ones({3, 5}), b = at::ones({5, 7}), bias = at::ones({7});
  EXPECT_EQ(CountsOf([&] { at::mm(a, b); }).flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(CountsOf([&] { at::addmm(bias, a, b); }).flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(CountsOf([&] { at::linear(a, b.t().contiguous(), bias); }).flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(CountsOf([&] { at::bmm(at::ones({2, 3, 5}), at::ones({2, 5, 7})); }).flops, 420);
  EXPECT_EQ(CountsOf([&] { at::add(a, a); }).flops, 0);
}

TEST(OpCounter, ConvolutionsCountGroupsStridesAndTransposition) {
  const at::Tensor x = at::ones({2, 8, 10, 10});
  EXPECT_EQ(CountsOf([&] { at::conv2d(x, at::ones({16, 8, 3, 3}), {}, 2, 1); }).flops,
            2 * (2 * 16 * 5 * 5) * (8 * 3 * 3));
  EXPECT_EQ(CountsOf([&] { at::conv2d(x, at::ones({16, 2, 3, 3}), {}, 1, 1, 1, 4); }).flops,
            2 * (2 * 16 * 10 * 10) * (2 * 3 * 3));
  EXPECT_EQ(CountsOf([&] { at::conv_transpose2d(x, at::ones({8, 4, 3, 3})); }).flops,
            2 * (2 * 8 * 10 * 10) * (4 * 3 * 3));
}

TEST(OpCounter, BackwardCountsTheGradientsThatAreAskedFor) {
  const auto counted = [](bool of_input) {
    const at::Tensor x = at::ones({2, 8, 10, 10}).requires_grad_(of_input);
    const at::Tensor w = at::ones({16, 8, 3, 3}).requires_grad_(true);
    const at::Tensor loss = at::conv2d(x, w).sum();
    return CountsOf([&] { loss.backward(); }).flops;
  };
  const int64_t forward = 2 * (2 * 16 * 8 * 8) * (8 * 3 * 3);
  EXPECT_EQ(counted(false), forward);
  EXPECT_EQ(counted(true), 2 * forward);
}

// Two products forward, four backward, whether a kernel is fused or not, and masked scores as well.
TEST(OpCounter, AttentionCountsAsItsProducts) {
  const auto operand = [](int64_t length, int64_t width) {
    return at::randn({2, 3, length, width}).requires_grad_(true);
  };
  const at::Tensor query = operand(8, 16), key = operand(8, 16), value = operand(8, 16);
  const int64_t forward = 2 * (2 * 3) * (8 * 8) * (16 + 16);
  for (const bool fused : {true, false}) {
    at::globalContext().setSDPUseFlash(fused);
    for (const bool causal : {true, false}) {
      at::Tensor out;
      const int64_t counted =
          CountsOf([&] {
            out = at::scaled_dot_product_attention(query, key, value, {}, 0.0, causal);
          }).flops;
      EXPECT_EQ(counted, forward) << fused << causal;
      EXPECT_EQ(CountsOf([&] { out.sum().backward(); }).flops, 2 * forward) << fused << causal;
    }
  }
  at::globalContext().setSDPUseFlash(true);
}

TEST(OpCounter, BytesAreWhatIsReadAndWritten) {
  const at::Tensor x = at::ones({100});
  EXPECT_EQ(CountsOf([&] { at::add(x, x); }).bytes, 3 * 100 * kFloat);
  EXPECT_EQ(CountsOf([&] { x.add_(x); }).bytes, 3 * 100 * kFloat);
  EXPECT_EQ(CountsOf([&] { x.zero_(); }).bytes, 100 * kFloat);
  EXPECT_EQ(CountsOf([&] { x.view({10, 10}); }).bytes, 0);
  EXPECT_EQ(CountsOf([&] { at::empty({100}); }).bytes, 0);
  // A cast, and one that need not be done.
  EXPECT_EQ(CountsOf([&] { x.to(at::kBFloat16); }).bytes, 100 * kFloat + 100 * 2);
  EXPECT_EQ(CountsOf([&] { x.to(at::kFloat); }).bytes, 0);
  EXPECT_EQ(CountsOf([&] { at::add(at::ones({1}).expand({100}), x); }).bytes,
            kFloat + kFloat + 2 * 100 * kFloat);  // ones writes one, add reads it and x
}

TEST(OpCounter, ResNet50AtItsImageHasThePublishedFlops) {
  // TorchVision's table says 4.09 GFLOPS of ResNet50_Weights.IMAGENET1K_V2, which are
  // multiply-adds.
  const std::unique_ptr<Model> model =
      FindModel("resnet50")->make({c10::kCPU, c10::MemoryFormat::ChannelsLast, /*train=*/false});
  const int64_t flops = CountsOfStep(*model, Precision::kFp32, 1, {224, 224}).flops;
  EXPECT_NEAR(static_cast<double>(flops), 2 * 4.09e9, 0.01e9);
  EXPECT_EQ(flops, FindModel("resnet50")->forward_flops(224, 224));
  EXPECT_EQ(flops, 8178368512);  // catalog/workloads.yaml
}

TEST(OpCounter, TrainingIsThreeTimesAsMuchLessTheImagesGradient) {
  const std::unique_ptr<Model> model =
      FindModel("resnet50")->make({c10::kCPU, c10::MemoryFormat::ChannelsLast, /*train=*/true});
  const int64_t images_gradient = 2 * (16 * 16 * 64) * (3 * 7 * 7);
  EXPECT_EQ(CountsOfStep(*model, Precision::kFp32, 2, {32, 32}).flops,
            2 * (3 * FindModel("resnet50")->forward_flops(32, 32) - images_gradient));
  EXPECT_EQ(FindModel("resnet50")->train_flops(224, 224), 24299077632);
}

// TorchVision publishes 134.38 G multiply-adds for an image of 800x800, with 1,000 proposals.
TEST(OpCounter, FasterRcnnIsThePublishedFigureAndWhatAStepDoes) {
  EXPECT_NEAR(FasterRcnnForwardFlops(800, 800) / 2e9, 134.38, 0.005);
  const Placement placement{c10::kCPU, c10::MemoryFormat::ChannelsLast, /*train=*/false};
  FasterRcnn model(placement);
  const int64_t counted = CountsOfStep(model, Precision::kFp32, 1, {64, 64}).flops;
  const double proposals = model.Figures().at(0).second;
  EXPECT_LT(proposals, 1000);
  constexpr int64_t kFlopsARegion = 2 * (256 * 49 * 1024 + 1024 * 1024 + 1024 * 91 * 5);
  EXPECT_EQ(counted, FasterRcnnForwardFlops(64, 64) -
                         (1000 - static_cast<int64_t>(proposals)) * kFlopsARegion);
}

TEST(OpCounter, AutocastCountsNoProductTwice) {
  const Placement placement{c10::kCPU, c10::MemoryFormat::ChannelsLast, /*train=*/true};
  TinyModel model(placement);
  EXPECT_EQ(CountsOfStep(model, Precision::kAmpBf16, 4, {8, 8}).flops,
            CountsOfStep(model, Precision::kFp32, 4, {8, 8}).flops);
}

TEST(OpCounter, NothingIsCountedOnceItIsGone) {
  {
    const OpCounter counter;
  }
  const at::Tensor a = at::ones({3, 3});
  at::mm(a, a);
  const OpCounter counter;
  EXPECT_EQ(counter.counts().flops, 0);
  EXPECT_THROW(OpCounter(), std::logic_error);
}

class OneProduct final : public Lane {
 public:
  StepOutput Step() override {
    at::mm(at::ones({2, 2}), at::ones({2, 2}));
    return {};
  }
  int64_t PrimingSteps() const override { return 3; }
};

TEST(CountedLane, CountsItsFirstStepAlone) {
  OneProduct inner;
  CountedLane lane(inner);
  EXPECT_EQ(lane.counts().flops, 0);
  for (int i = 0; i < 3; ++i) lane.Step();
  EXPECT_EQ(lane.counts().flops, 16);
  EXPECT_EQ(lane.PrimingSteps(), 3);
}

}  // namespace
}  // namespace assay::train
