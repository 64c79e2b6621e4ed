// Trainer, Measurement and RunCell with a model of three layers, on the CPU.
#include "runners/train/trainer.h"

#include <ATen/Context.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sub.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runners/train/measurement.h"
#include "runners/train/models/registry.h"
#include "runners/train/train_runner.h"
#include "tests/unit/runners/train/fake_device.h"
#include "tests/unit/runners/train/tiny_model.h"

namespace assay::train {
namespace {

std::unique_ptr<Model> MakeTiny(const Placement& placement) {
  return std::make_unique<TinyModel>(placement);
}

std::unique_ptr<Model> MakeBroken(const Placement& placement) {
  auto model = std::make_unique<TinyModel>(placement);
  model->tensors().parameters()[0].tensor.detach().fill_(std::numeric_limits<double>::quiet_NaN());
  return model;
}

int64_t NoFlops(int64_t, int64_t) { return 1; }

ModelEntry Entry(std::unique_ptr<Model> (*make)(const Placement&)) {
  return {.name = "tiny",
          .parameters = 0,
          .sample_unit = "img",
          .image = {8, 8},
          .least_image = {8, 8},
          .make = make,
          .forward_flops = NoFlops};
}

CellFile TinyCell() {
  CellFile cell;
  cell.spec.model = "tiny";
  cell.spec.batch = 4;
  cell.spec.stop = {.confidence = 0.01, .min_seconds = 0.02, .max_seconds = 0.05};
  return cell;
}

RunnerResult RunTiny(const CellFile& cell, std::unique_ptr<Model> (*make)(const Placement&),
                     nlohmann::json& fields) {
  RecordWriter records(open("/dev/null", O_WRONLY | O_CLOEXEC), true);
  const std::unique_ptr<Device> device = MakeCpuDevice();
  return RunCell(cell, Entry(make), *device, fields, records);
}

TEST(Trainer, LossFallsOverFiftyStepsOnAFixedBatch) {
  at::manual_seed(1);
  TinyModel model({});
  Trainer trainer(model, Precision::kFp32, 1, {.learning_rate = 0.1});
  const Batch batch = FixedBatch(8);
  const float first = trainer.TrainStep(batch).loss.item<float>();
  float last = first;
  for (int i = 1; i < 50; ++i) last = trainer.TrainStep(batch).loss.item<float>();
  EXPECT_LT(last, 0.8f * first);
}

TEST(Trainer, MicroBatchesGiveTheGradientsOfTheWholeBatch) {
  const Batch batch = FixedBatch(8);
  at::manual_seed(1);
  TinyModel whole({});
  at::manual_seed(1);
  TinyModel parts({});
  Trainer a(whole, Precision::kFp32, 1), b(parts, Precision::kFp32, 4);
  const float loss_a = a.TrainStep(batch).loss.item<float>();
  const float loss_b = b.TrainStep(batch).loss.item<float>();
  EXPECT_NEAR(loss_a, loss_b, 1e-5);
  const auto gradients_a = a.Gradients(), gradients_b = b.Gradients();
  ASSERT_EQ(gradients_a.size(), gradients_b.size());
  for (size_t i = 0; i < gradients_a.size(); ++i) {
    EXPECT_TRUE(at::allclose(gradients_a[i], gradients_b[i], 1e-4, 1e-6)) << i;
  }
}

// Batch normalisation sees a micro-batch, whatever framework splits: the gradients are the mean of
// those of the micro-batches, each by itself, and not those of the whole batch.
TEST(Trainer, MicroBatchesOfResNet50GiveTheMeanOfTheirOwnGradients) {
  constexpr int64_t kMicro = 4, kCount = 3;
  const std::unique_ptr<Device> device = MakeCpuDevice();
  SyntheticData data(*device, {.batch = kMicro * kCount, .image = {32, 32}, .classes = 1000});
  const Batch batch = data.Next();
  at::manual_seed(1);
  const std::unique_ptr<Model> split = FindModel("resnet50")->make({});
  at::manual_seed(1);
  const std::unique_ptr<Model> alone = FindModel("resnet50")->make({});
  Trainer all(*split, Precision::kFp32, kCount);
  const float loss = all.TrainStep(batch).loss.item<float>();
  // No rate: the weights stay, so that each micro-batch is the first.
  Trainer one(*alone, Precision::kFp32, 1, {.learning_rate = 0});
  std::vector<at::Tensor> sum;
  float losses = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    losses += one.TrainStep({batch.images.narrow(0, i * kMicro, kMicro),
                             batch.labels.narrow(0, i * kMicro, kMicro)})
                  .loss.item<float>();
    for (size_t j = 0; j < one.Gradients().size(); ++j) {
      if (i == 0) sum.push_back(one.Gradients()[j].clone());
      if (i > 0) sum[j].add_(one.Gradients()[j]);
    }
  }
  EXPECT_NEAR(loss, losses / kCount, 1e-5 * loss);
  ASSERT_EQ(all.Gradients().size(), sum.size());
  for (size_t j = 0; j < sum.size(); ++j) {
    const at::Tensor mean = sum[j].div(kCount);
    EXPECT_LT(at::sub(all.Gradients()[j], mean).norm().item<float>(),
              1e-4f * mean.norm().item<float>())
        << j;
  }
}

TEST(Trainer, Bfloat16StaysCloseToFp32) {
  const Batch batch = FixedBatch(8);
  at::manual_seed(1);
  TinyModel model({});
  at::manual_seed(1);
  TinyModel amp_model({});
  Trainer plain(model, Precision::kFp32, 1), amp(amp_model, Precision::kAmpBf16, 1);
  const float loss = plain.TrainStep(batch).loss.item<float>();
  const float amp_loss = amp.TrainStep(batch).loss.item<float>();
  EXPECT_NEAR(amp_loss, loss, 0.03);
  EXPECT_NE(amp_loss, loss);
}

TEST(Trainer, InferenceLeavesNoGradientsAndTheSameWeights) {
  TinyModel model({.train = false});
  const at::Tensor before = model.tensors().parameters()[0].tensor.clone();
  Trainer trainer(model, Precision::kFp32, 1);
  const StepOutput output = trainer.InferStep(FixedBatch(4));
  EXPECT_FALSE(output.loss.defined());
  EXPECT_FALSE(output.logits.requires_grad());
  EXPECT_TRUE(trainer.Gradients().empty());
  EXPECT_TRUE(model.tensors().parameters()[0].tensor.equal(before));
}

TEST(LossScaler, OverflowIsFlaggedAndHalvesTheScale) {  // case 31
  LossScaler scaler(c10::kCPU, 1024);
  std::vector<at::Tensor> gradients = {
      at::full({2}, std::numeric_limits<float>::infinity(), at::kFloat)};
  scaler.Unscale(gradients);
  scaler.Update();
  EXPECT_EQ(scaler.found_inf().item<float>(), 1.0f);
  EXPECT_EQ(scaler.scale().item<float>(), 512.0f);
}

TEST(LossScaler, GradientsAreDividedByTheScale) {
  LossScaler scaler(c10::kCPU, 1024);
  std::vector<at::Tensor> gradients = {at::full({2}, 2048.0f, at::kFloat)};
  scaler.Unscale(gradients);
  scaler.Update();
  EXPECT_EQ(scaler.found_inf().item<float>(), 0.0f);
  EXPECT_EQ(gradients[0][0].item<float>(), 2.0f);
  EXPECT_EQ(scaler.scale().item<float>(), 1024.0f);
}

TEST(SetMath, Fp32HasTf32OffInBothAndTf32On) {  // case 30
  const MathSettings fp32 = SetMath(Precision::kFp32);
  EXPECT_FALSE(fp32.allow_tf32_matmul);
  EXPECT_FALSE(fp32.allow_tf32_cudnn);
  const MathSettings tf32 = SetMath(Precision::kTf32);
  EXPECT_TRUE(tf32.allow_tf32_matmul);
  EXPECT_TRUE(tf32.allow_tf32_cudnn);
  EXPECT_FALSE(SetMath(Precision::kAmpFp16).allow_tf32_cudnn);
}

TEST(SetMath, ReadsBackWhatEachPrecisionSets) {
  const MathSettings fp32 = SetMath(Precision::kFp32);
  EXPECT_FALSE(fp32.reduced_precision_reduction_fp16);
  EXPECT_FALSE(fp32.reduced_precision_reduction_bf16);
  const MathSettings amp = SetMath(Precision::kAmpBf16);
  EXPECT_TRUE(amp.reduced_precision_reduction_fp16);
  EXPECT_TRUE(amp.reduced_precision_reduction_bf16);
  for (const MathSettings& math : {fp32, amp}) {
    EXPECT_TRUE(math.cudnn_benchmark);
    EXPECT_EQ(math.cudnn_benchmark_limit, 10);
    EXPECT_FALSE(math.deterministic);
    EXPECT_FALSE(math.fp16_accumulation);
    EXPECT_EQ(math.attention_backends, "flash,mem_efficient,cudnn,math");
  }
}

TEST(SetMath, IsNotOverruledFromOutside) {
  at::globalContext().setAllowFP16AccumulationCuBLAS(true);
  at::globalContext().setSDPUseFlash(false);
  at::globalContext().setDeterministicAlgorithms(true, false);
  setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  const MathSettings math = SetMath(Precision::kTf32);
  EXPECT_FALSE(math.fp16_accumulation);
  EXPECT_EQ(math.attention_backends, "flash,mem_efficient,cudnn,math");
  EXPECT_FALSE(math.deterministic);
  EXPECT_EQ(getenv("NVIDIA_TF32_OVERRIDE"), nullptr);
}

TEST(SetMath, NamesTheAllocatorsSettings) {
  EXPECT_EQ(SetMath(Precision::kFp32).allocator_settings, "default");
  setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 1);
  EXPECT_EQ(SetMath(Precision::kFp32).allocator_settings,
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  unsetenv("PYTORCH_CUDA_ALLOC_CONF");
}

TEST(RunCell, MeasuresAndCountsItsSteps) {
  nlohmann::json fields = nlohmann::json::object();
  const RunnerResult result = RunTiny(TinyCell(), MakeTiny, fields);
  EXPECT_EQ(result.outcome, "ok") << result.message;
  EXPECT_GT(fields["steps"].get<int64_t>(), 0);
  EXPECT_EQ(fields["device_steps"], fields["steps"]);
  EXPECT_EQ(fields["input_batches_seen"].get<int64_t>(),
            std::min<int64_t>(8, fields["steps"].get<int64_t>()));
  EXPECT_EQ(fields["samples"].get<int64_t>(), 4 * fields["steps"].get<int64_t>());
  EXPECT_DOUBLE_EQ(fields["throughput"].get<double>(),
                   fields["samples"].get<double>() / fields["seconds"].get<double>());
  EXPECT_EQ(fields["unit"], "img/s");
  EXPECT_TRUE(fields["allocated_peak_bytes"].is_null());
}

// Cases 30 and 32, with a device that says what a V100 says.
TEST(RunCell, PrecisionThatTheDeviceLacksIsUnsupportedAndNothingRuns) {
  RecordWriter records(open("/dev/null", O_WRONLY | O_CLOEXEC), true);
  QueueingDevice device(0.01);
  device.compute_capability = 70;
  for (const char* precision : {"tf32", "amp-bf16"}) {
    CellFile cell = TinyCell();
    cell.spec.precision = precision;
    nlohmann::json fields = nlohmann::json::object();
    const RunnerResult result = RunCell(cell, Entry(MakeTiny), device, fields, records);
    EXPECT_EQ(result.outcome, "unsupported") << precision;
    EXPECT_EQ(result.reason, "unsupported_precision") << precision;
    EXPECT_NE(result.message.find("this GPU has 7.0"), std::string::npos) << result.message;
    EXPECT_EQ(device.Counts().steps, 0);
    EXPECT_TRUE(fields.empty());
  }
}

TEST(RunCell, ATrialTakesItsStepsAndMeasuresNothing) {
  CellFile cell = TinyCell();
  cell.trial_steps = 20;
  nlohmann::json fields = nlohmann::json::object();
  EXPECT_EQ(RunTiny(cell, MakeTiny, fields).outcome, "ok");
  EXPECT_GT(fields["trial_used_bytes"].get<int64_t>(), 1 << 20);
  EXPECT_GT(fields["trial_capacity_bytes"], fields["trial_used_bytes"]);
  EXPECT_FALSE(fields.contains("throughput"));
}

TEST(RunCell, InferenceHasNoLoss) {
  CellFile cell = TinyCell();
  cell.spec.mode = "infer";
  nlohmann::json fields = nlohmann::json::object();
  EXPECT_EQ(RunTiny(cell, MakeTiny, fields).outcome, "ok");
  EXPECT_TRUE(fields["loss_last"].is_null());
}

TEST(RunCell, InferenceHasALatencyAndTrainingHasNone) {
  CellFile cell = TinyCell();
  nlohmann::json fields = nlohmann::json::object();
  RunTiny(cell, MakeTiny, fields);
  EXPECT_FALSE(fields.contains("latency_p50_ms"));
  cell.spec.mode = "infer";
  EXPECT_EQ(RunTiny(cell, MakeTiny, fields).outcome, "ok");
  EXPECT_GT(fields["latency_p50_ms"].get<double>(), 0);
  EXPECT_GE(fields["latency_requests"].get<int64_t>(), 1);
}

TEST(RunCell, LossThatStaysNonFiniteFails) {  // case 31
  nlohmann::json fields = nlohmann::json::object();
  const RunnerResult result = RunTiny(TinyCell(), MakeBroken, fields);
  EXPECT_EQ(result.outcome, "fail");
  EXPECT_EQ(result.reason, "non_finite_loss");
}

TEST(RunCell, NonFiniteOutputOfInferenceFails) {
  CellFile cell = TinyCell();
  cell.spec.mode = "infer";
  nlohmann::json fields = nlohmann::json::object();
  EXPECT_EQ(RunTiny(cell, MakeBroken, fields).reason, "non_finite_loss");
}

TEST(JudgeLosses, OneEarlyOverflowIsOnlyANote) {  // case 31
  Measurement measured;
  measured.counts = {.steps = 500, .skipped = 3, .non_finite = 1};
  EXPECT_EQ(JudgeLosses(measured, true).outcome, "ok");
}

TEST(JudgeLosses, ScaleThatFellToNothingFails) {  // case 31
  Measurement measured;
  measured.counts = {.steps = 500, .skipped = 500, .non_finite = 0};
  EXPECT_EQ(JudgeLosses(measured, true).reason, "non_finite_loss");
}

TEST(Measure, StepsThatWereQueuedWhenTheRuleStoppedBelongToTheWindow) {
  RecordWriter records(open("/dev/null", O_WRONLY | O_CLOEXEC), true);
  QueueingDevice device(0.1);
  const StopRule stop{.confidence = 0, .min_seconds = 1, .max_seconds = 2};
  CountingLane lane(device);
  const Measurement measured = Measure(device, lane, stop, 4, records);
  EXPECT_EQ(measured.counts.steps, measured.steps);
  EXPECT_DOUBLE_EQ(measured.seconds, 0.1 * static_cast<double>(measured.steps));
  EXPECT_GE(measured.seconds, 2.0);
  EXPECT_EQ(measured.stop_reason, "max_seconds");
  EXPECT_NEAR(measured.p50_seconds, 0.1, 1e-12);
  EXPECT_TRUE(measured.warmup_steady);
}

TEST(Measure, HostRunsAheadByTheQueueDepthOnly) {
  RecordWriter records(open("/dev/null", O_WRONLY | O_CLOEXEC), true);
  QueueingDevice device(0.1);
  const StopRule stop{.confidence = 0, .min_seconds = 1, .max_seconds = 2};
  CountingLane lane(device);
  Measure(device, lane, stop, 4, records);
  EXPECT_EQ(device.peaks_forgotten_after, std::vector<int64_t>{1});  // once, behind the search
  EXPECT_EQ(device.most_pending, 4);  // the depth, and the step that was just queued
}

}  // namespace
}  // namespace assay::train
