// What every model must do, on small versions of each on the CPU; that they are the right models
// reference_test.py shows.
#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "runners/train/op_counter.h"
#include "runners/train/trainer.h"
#include "tests/unit/runners/train/shallow_models.h"

namespace assay::train {
namespace {

Batch BatchFor(const ModelEntry& entry, const Model& model, int64_t n,
               c10::MemoryFormat layout = c10::MemoryFormat::ChannelsLast) {
  return RandomBatch({.batch = n,
                      .image = SmallImage(entry),
                      .classes = model.classes(),
                      .layout = layout,
                      .input = entry.input},
                     at::kCPU);
}

TEST(EveryModel, LossFallsOverFiftyStepsOnAFixedBatchInEveryPrecisionOfTheCpu) {
  for (const ModelEntry& entry : TinyModels()) {
    SCOPED_TRACE(entry.name);
    for (const Precision precision : {Precision::kFp32, Precision::kAmpBf16}) {
      at::manual_seed(3);
      const std::unique_ptr<Model> model = entry.make({});
      Trainer trainer(*model, precision, 1, {.learning_rate = 0.02});
      const Batch batch = BatchFor(entry, *model, 2);
      const float first = trainer.TrainStep(batch).loss.item<float>();
      float last = first;
      for (int i = 1; i < 50; ++i) last = trainer.TrainStep(batch).loss.item<float>();
      EXPECT_LT(last, 0.9f * first) << static_cast<int>(precision);
    }
  }
}

TEST(EveryModel, FlopsOfAStepAreTheFormulas) {
  for (const ModelEntry& entry : TinyModels()) {
    const ImageSize size = SmallImage(entry);
    for (const bool train : {true, false}) {
      const std::unique_ptr<Model> model = entry.make({.train = train});
      Trainer trainer(*model, Precision::kFp32, 1);
      const Batch batch = BatchFor(entry, *model, 2);
      const OpCounter counter;
      trainer.Step(batch);
      EXPECT_EQ(counter.counts().flops,
                2 * (train ? entry.train_flops : entry.forward_flops)(size.height, size.width))
          << entry.name;
    }
  }
}

TEST(EveryModel, LayoutChangesNothingButRounding) {
  for (const ModelEntry& entry : TinyModels()) {
    at::Tensor logits[2];
    for (const bool last : {true, false}) {
      const c10::MemoryFormat layout =
          last ? c10::MemoryFormat::ChannelsLast : c10::MemoryFormat::Contiguous;
      at::manual_seed(3);
      const std::unique_ptr<Model> model = entry.make({.layout = layout, .train = false});
      Batch batch = BatchFor(entry, *model, 2);
      if (entry.input == InputKind::kImages) batch.images = batch.images.contiguous(layout);
      logits[last] = Trainer(*model, Precision::kFp32, 1).InferStep(batch).logits;
    }
    EXPECT_TRUE(at::allclose(logits[0], logits[1], 1e-3, 1e-4)) << entry.name;
  }
}

TEST(EveryModel, MicroBatchesTrain) {
  for (const ModelEntry& entry : TinyModels()) {
    at::manual_seed(3);
    const std::unique_ptr<Model> model = entry.make({});
    Trainer trainer(*model, Precision::kFp32, 2);
    const StepOutput output = trainer.TrainStep(BatchFor(entry, *model, 4));
    EXPECT_TRUE(std::isfinite(output.loss.item<float>())) << entry.name;
    for (const at::Tensor& gradient : trainer.Gradients()) {
      EXPECT_TRUE(gradient.defined()) << entry.name;
    }
  }
}

// What the literature says of the whole models, in multiply-adds: He et al. (2015), table 1 (3.8);
// TorchVision of resnet50; timm's results, which count normalisation too, of the ResNeXts (8.01 and
// 8.02); Liu et al. (2021), table 1, of Swin-L (34.5); for GPT-2 a token takes one for each
// parameter but the embedding of places, and 2 * layers * tokens * width (Kaplan et al., 2020).
TEST(EveryModel, FlopsAreThePublishedOnes) {
  const auto macs = [](const char* name) {
    const ModelEntry* entry = FindModel(name);
    return static_cast<double>(entry->forward_flops(entry->image.height, entry->image.width)) / 2;
  };
  EXPECT_NEAR(macs("resnet50_v1"), 3.8e9, 0.1e9);
  EXPECT_NEAR(macs("resnet50"), 4.09e9, 0.01e9);
  EXPECT_NEAR(macs("resnext101_32x4d"), 8.01e9, 0.05e9);
  EXPECT_NEAR(macs("se_resnext101_32x4d"), 8.02e9, 0.05e9);
  EXPECT_NEAR(macs("swin_l"), 34.5e9, 0.05e9);
  EXPECT_NEAR(macs("gpt2_medium"), 1024 * ((354823168.0 - 1024 * 1024) + 2 * 24 * 1024.0 * 1024),
              0.01 * 413e9);
}

TEST(Swin, StochasticDepthIsDrawnAnewInEveryPassOfTrainingAndInNoneOfInference) {
  const ModelEntry entry = ShallowSwinEntry();
  for (const bool train : {true, false}) {
    at::manual_seed(3);
    const std::unique_ptr<Model> model = entry.make({.train = train});
    const Batch batch = BatchFor(entry, *model, 2);
    bool same = true;
    const at::Tensor first = model->Forward(batch.images);
    for (int i = 0; i < 8; ++i) same = same && first.equal(model->Forward(batch.images));
    EXPECT_EQ(same, !train);
  }
}

TEST(Gpt2, TakesShorterSequencesAndSeesNoLaterToken) {
  const ModelEntry entry = ShallowGpt2Entry();
  const std::unique_ptr<Model> model = entry.make({.train = false});
  const Batch batch = BatchFor(entry, *model, 2);
  const at::Tensor whole = model->Forward(batch.images);
  const at::Tensor half = model->Forward(batch.images.narrow(1, 0, 32));
  EXPECT_TRUE(at::allclose(whole.narrow(1, 0, 32), half, 1e-4, 1e-4));
}

TEST(RandomBatch, OfTokensAsksForTheNextOne) {
  const Batch batch = RandomBatch(
      {.batch = 3, .image = {1, 64}, .classes = 512, .input = InputKind::kTokens}, at::kCPU);
  EXPECT_EQ(batch.images.sizes(), (std::vector<int64_t>{3, 64}));
  EXPECT_TRUE(batch.images.narrow(1, 1, 63).equal(batch.labels.narrow(1, 0, 63)));
  EXPECT_LT(batch.images.max().item<int64_t>(), 512);
}

TEST(Registry, SizesAreWithinWhatAModelTakes) {
  EXPECT_TRUE(ParseImage("64x32", *FindModel("resnext101_32x4d")));
  EXPECT_FALSE(ParseImage("64x31", *FindModel("resnext101_32x4d")));
  EXPECT_FALSE(ParseImage("256x224", *FindModel("swin_l")));
  EXPECT_TRUE(ParseImage("1x16", *FindModel("gpt2_medium")));
  EXPECT_FALSE(ParseImage("1x1025", *FindModel("gpt2_medium")));
  EXPECT_FALSE(ParseImage("2x1024", *FindModel("gpt2_medium")));
  EXPECT_EQ(ParseImage("", *FindModel("gpt2_medium"))->width, 1024);
}

}  // namespace
}  // namespace assay::train
