// The lane graph: that a replayed step is the step, and all of it.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runners/train/lanes/lane.h"
#include "runners/train/models/resnet50.h"
#include "tests/gpu/gpu_fixture.h"

namespace assay::train {
namespace {

using GpuGraph = GpuTest;

constexpr ImageSize kImage = {64, 64};

// A lane with all that it works on, on the first GPU.
struct Bench {
  Bench(const std::string& lane_name, Precision precision, bool train, int64_t batch = 16)
      : device(MakeCudaDevice("", 0)) {
    SetMath(precision);
    if (lane_name == "graph") device->PrepareToRecord();
    at::manual_seed(5);
    const Placement placement{device->torch(), c10::MemoryFormat::ChannelsLast, train};
    model = MakeResNet50(placement);
    data = std::make_unique<SyntheticData>(device->torch(), device->MemoryBytes(), placement.layout,
                                           batch, kImage, model->classes());
    trainer = std::make_unique<Trainer>(*model, precision, 1);
    lane = MakeLane(lane_name, *device, *trainer, *data);
    device->BeginWindow();
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
  std::unique_ptr<SyntheticData> data;
  std::unique_ptr<Trainer> trainer;
  std::unique_ptr<Lane> lane;
};

std::vector<float> Losses(const std::string& lane, Precision precision, int steps) {
  Bench bench(lane, precision, /*train=*/true);
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) losses.push_back(bench.lane->Step().loss.item<float>());
  return losses;
}

TEST_F(GpuGraph, TrainsAsTheEagerLaneDoes) {
  const std::vector<float> eager = Losses("eager", Precision::kFp32, 24);
  const std::vector<float> graph = Losses("graph", Precision::kFp32, 24);
  for (size_t i = 0; i < eager.size(); ++i) {
    // Sums of atomics come in another order each time, and training magnifies that.
    EXPECT_NEAR(graph[i] / eager[i], 1, 0.02) << "step " << i;
  }
  // Each batch has a loss of its own: one that is repeated would show that nothing rotates.
  for (size_t i = 12; i < graph.size(); ++i) EXPECT_NE(graph[i], graph[i - 1]) << "step " << i;
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
  const at::Tensor tensor = at::ones({4}, at::TensorOptions(at::kFloat).device(device->torch()));
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
