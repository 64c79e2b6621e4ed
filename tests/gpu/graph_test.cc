// The lane graph: that a replayed step is the step, and all of it.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runners/train/lanes/lane.h"
#include "runners/train/models/registry.h"
#include "tests/gpu/gpu_fixture.h"

namespace assay::train {
namespace {

using GpuGraph = GpuTest;

constexpr ImageSize kImage = {64, 64};

// A lane with all that it works on, on the first GPU.
struct Bench {
  Bench(const std::string& lane_name, Precision precision, bool train, int64_t batch = 16,
        ImageSize image = kImage, bool deterministic = false)
      : device(MakeCudaDevice("", 0)) {
    SetMath(precision);
    if (deterministic) {
      at::globalContext().setDeterministicCuDNN(true);
      at::globalContext().setBenchmarkCuDNN(false);
    }
    if (lane_name == "graph") device->PrepareToRecord();
    at::manual_seed(5);
    const Placement placement{device->torch(), c10::MemoryFormat::ChannelsLast, train};
    model = FindModel("resnet50")->make(placement);
    data = MakeDataSource(
        "synthetic", *device,
        {.batch = batch, .image = image, .classes = model->classes(), .layout = placement.layout});
    // A low rate where two runs are compared: a high one magnifies rounding from step to step.
    trainer = std::make_unique<Trainer>(*model, precision, 1,
                                        SgdOptions{.learning_rate = deterministic ? 1e-4 : 1e-3});
    lane = MakeLane(lane_name, *device, *trainer, *data);
    device->BeginWindow();
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
  std::unique_ptr<DataSource> data;
  std::unique_ptr<Trainer> trainer;
  std::unique_ptr<Lane> lane;
};

struct Trained {
  std::vector<float> losses;
  at::Tensor moved;  // how far all weights are from where they began, on the CPU

  explicit Trained(const std::string& lane) {
    constexpr int kSteps = 16;
    // Enough pixels for batch normalisation: with few, rounding is magnified from step to step.
    Bench bench(lane, Precision::kFp32, /*train=*/true, 32, {128, 128}, /*deterministic=*/true);
    const at::Tensor before = Weights(bench);
    for (int i = 0; i < kSteps; ++i) losses.push_back(bench.lane->Step().loss.item<float>());
    moved = Weights(bench) - before;
  }

  static at::Tensor Weights(Bench& bench) {
    std::vector<at::Tensor> flat;
    for (const NamedTensor& p : bench.model->tensors().parameters()) {
      flat.push_back(p.tensor.detach().flatten().cpu());
    }
    return at::cat(flat);
  }
};

float LossesApart(const Trained& a, const Trained& b) {
  float most = 0;
  for (size_t i = 0; i < a.losses.size(); ++i) {
    most = std::max(most, std::abs(a.losses[i] / b.losses[i] - 1));
  }
  return most;
}

float WeightsApart(const Trained& a, const Trained& b) {
  return (a.moved - b.moved).norm().item<float>() / b.moved.norm().item<float>();
}

// What two runs of the same lane differ by (sums of atomics come in another order each time) is the
// measure: a step that was left out, done twice or done with another batch is far more.
TEST_F(GpuGraph, TrainsAsTheEagerLaneDoes) {
  const Trained eager("eager"), again("eager"), graph("graph");
  ASSERT_LT(LossesApart(again, eager), 0.01f) << "too noisy to tell anything";
  ASSERT_LT(WeightsApart(again, eager), 0.05f) << "too noisy to tell anything";
  EXPECT_LE(LossesApart(graph, eager), 3 * LossesApart(again, eager) + 1e-5f);
  EXPECT_LE(WeightsApart(graph, eager), 3 * WeightsApart(again, eager) + 1e-4f);
  RecordProperty("eager_losses_apart", std::to_string(LossesApart(again, eager)));
  RecordProperty("graph_losses_apart", std::to_string(LossesApart(graph, eager)));
  RecordProperty("eager_weights_apart", std::to_string(WeightsApart(again, eager)));
  RecordProperty("graph_weights_apart", std::to_string(WeightsApart(graph, eager)));
  // Each batch has a loss of its own: one that is repeated would show that nothing rotates.
  for (size_t i = 1; i < graph.losses.size(); ++i) EXPECT_NE(graph.losses[i], graph.losses[i - 1]);
}

TEST_F(GpuGraph, InfersAsTheEagerLaneDoes) {
  Bench eager("eager", Precision::kFp32, /*train=*/false);
  Bench graph("graph", Precision::kFp32, /*train=*/false);
  for (int i = 0; i < 20; ++i) {
    const at::Tensor expected = eager.lane->Step().logits.cpu();
    const at::Tensor got = graph.lane->Step().logits.cpu();
    EXPECT_LT((got - expected).norm().item<float>(), 1e-3f * expected.norm().item<float>()) << i;
  }
}

TEST_F(GpuGraph, OverflowIsSkippedAndLowersTheScaleInsideTheGraph) {  // case 31
  Bench bench("graph", Precision::kAmpFp16, /*train=*/true);
  for (int i = 0; i < 16; ++i) bench.lane->Step();
  const double before = bench.trainer->scaler()->scale().item<double>();
  const at::Tensor weight = bench.model->tensors().parameters().back().tensor.detach();
  const at::Tensor kept = weight.clone();
  weight.fill_(std::numeric_limits<double>::infinity());
  bench.device->BeginWindow();
  for (int i = 0; i < 3; ++i) bench.lane->Step();
  const StepCounts broken = bench.device->Counts();
  EXPECT_EQ(broken.steps, 3);
  EXPECT_EQ(broken.skipped, 3);
  EXPECT_EQ(broken.non_finite, 3);
  EXPECT_EQ(bench.trainer->scaler()->scale().item<double>(), before / 8);
  weight.copy_(kept);
  bench.device->BeginWindow();
  const float loss = bench.lane->Step().loss.item<float>();
  EXPECT_TRUE(std::isfinite(loss));
  EXPECT_EQ(bench.device->Counts().skipped, 0);
}

TEST_F(GpuGraph, EveryPrecisionMeasuresInBothModes) {
  for (const std::string precision : {"fp32", "tf32", "amp-fp16", "amp-bf16"}) {
    for (const std::string mode : {"train", "infer"}) {
      CellFile cell = Cell(precision, 8);
      cell.spec.lane = "graph";
      cell.spec.image = "32x32";
      cell.spec.stop = {.confidence = 0.01, .min_seconds = 0.1, .max_seconds = 0.2};
      cell.spec.mode = mode;
      const RunnerResult result = Run(cell);
      if (result.reason == "unsupported_precision") continue;
      ASSERT_EQ(result.outcome, "ok") << precision << " " << mode << ": " << result.message;
      EXPECT_EQ(result.fields["device_steps"], result.fields["steps"]);
    }
  }
}

TEST_F(GpuGraph, MicroBatchesAreRecordedToo) {
  CellFile cell = Cell("amp-fp16", 32);
  cell.spec.lane = "graph";
  cell.spec.accumulate = 4;
  const RunnerResult result = Run(cell);
  ASSERT_EQ(result.outcome, "ok") << result.message;
  EXPECT_EQ(result.fields["device_steps"], result.fields["steps"]);
}

TEST_F(GpuGraph, IsFasterWhereTheHostIsTheLimit) {
  CellFile cell = Cell("amp-fp16", 8);
  const RunnerResult eager = Run(cell);
  cell.spec.lane = "graph";
  const RunnerResult graph = Run(cell);
  ASSERT_EQ(eager.outcome, "ok") << eager.message;
  ASSERT_EQ(graph.outcome, "ok") << graph.message;
  EXPECT_GT(graph.fields["throughput"].get<double>(),
            1.5 * eager.fields["throughput"].get<double>());
}

TEST_F(GpuGraph, BatchThatDoesNotFitIsMemLimit) {
  CellFile cell = Cell("fp32", 1000000);
  cell.spec.lane = "graph";
  cell.spec.image = "224x224";
  const RunnerResult result = Run(cell);
  EXPECT_EQ(result.outcome, "mem_limit") << result.message;
}

TEST_F(GpuGraph, WorkThatCannotBeRecordedSaysSo) {
  const std::unique_ptr<Device> device = MakeCudaDevice("", 0);
  device->PrepareToRecord();
  const at::Tensor tensor = at::ones({1}, at::TensorOptions(at::kFloat).device(device->torch()));
  EXPECT_THROW(device->Record([&] { (void)tensor.item<float>(); }), CannotRecord);
}

TEST_F(GpuGraph, RecordingRunsNothingAndReplayingRunsItAgain) {
  const std::unique_ptr<Device> device = MakeCudaDevice("", 0);
  device->PrepareToRecord();
  const at::Tensor tensor = at::ones({4}, at::TensorOptions(at::kFloat).device(device->torch()));
  const at::Tensor sum = at::zeros({4}, tensor.options());
  const std::unique_ptr<Recording> recording = device->Record([&] { sum.add_(tensor); });
  device->Synchronize();
  EXPECT_EQ(sum[0].item<float>(), 0.0f);
  recording->Replay();
  recording->Replay();
  EXPECT_EQ(sum[0].item<float>(), 2.0f);
}

}  // namespace
}  // namespace assay::train
