#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/gpu/gpu_fixture.h"

namespace assay::train {
namespace {

using GpuTrain = GpuTest;

TEST_F(GpuTrain, EveryPrecisionMeasuresInBothModes) {
  for (const std::string precision : {"fp32", "tf32", "amp-fp16", "amp-bf16"}) {
    for (const std::string mode : {"train", "infer"}) {
      // cuDNN's search, new for each precision, is what takes the time: few and small layers' work.
      CellFile cell = Cell(precision, 8);
      cell.spec.image = "32x32";
      cell.spec.stop = {.confidence = 0.01, .min_seconds = 0.1, .max_seconds = 0.2};
      cell.spec.mode = mode;
      const RunnerResult result = Run(cell);
      if (result.reason == "unsupported_precision") continue;
      ASSERT_EQ(result.outcome, "ok") << precision << " " << mode << ": " << result.message;
      EXPECT_EQ(result.fields["allow_tf32_matmul"], precision == "tf32");
      EXPECT_EQ(result.fields["allow_tf32_cudnn"], precision == "tf32");
    }
  }
}

TEST_F(GpuTrain, StepsCountedOnTheDeviceAreThoseClaimed) {
  const RunnerResult result = Run(Cell("fp32", 16));
  ASSERT_EQ(result.outcome, "ok") << result.message;
  EXPECT_EQ(result.fields["device_steps"], result.fields["steps"]);
}

// Looked at by the kernel that counts the steps, in recordings too; with data of the host the
// copies are looked at where the step reads them.
TEST_F(GpuTrain, EveryBatchThatRotatesIsSeenByTheDevice) {
  for (const std::string lane : {"eager", "graph"}) {
    for (const std::string data : {"synthetic", "host"}) {
      CellFile cell = Cell("amp-fp16", 16);
      cell.spec.lane = lane;
      cell.spec.data = data;
      const RunnerResult result = Run(cell);
      ASSERT_EQ(result.outcome, "ok") << lane << " " << data << ": " << result.message;
      EXPECT_EQ(result.fields["data_batches"], 8);
      EXPECT_EQ(result.fields["input_batches_seen"], 8) << lane << " " << data;
    }
  }
}

TEST_F(GpuTrain, TheSameInputTwiceIsOneInput) {
  const std::unique_ptr<Device> device = MakeCudaDevice("", 0);
  const at::Tensor a =
      at::randn({4, 3, 17, 17}, at::TensorOptions(at::kFloat).device(device->torch()));
  const at::Tensor same = a.clone(), other = a + 1;
  device->BeginWindow();
  for (const at::Tensor& input : {a, same, a}) device->CountStep({}, {}, input);
  EXPECT_EQ(device->Counts().inputs, 1);
  device->CountStep({}, {}, other);
  EXPECT_EQ(device->Counts().inputs, 2);
  device->CountStep({}, {}, {});
  EXPECT_EQ(device->Counts().inputs, 2);
  EXPECT_EQ(device->Counts().steps, 5);
  device->BeginWindow();
  EXPECT_EQ(device->Counts().inputs, 0);
}

TEST_F(GpuTrain, DeviceAndHostClockAgreeWithinTwoPercent) {  // case 27
  const RunnerResult result = Run(Cell("fp32", 16));
  ASSERT_EQ(result.outcome, "ok") << result.message;
  EXPECT_NEAR(result.fields["host_seconds"].get<double>() / result.fields["seconds"].get<double>(),
              1, 0.02);
}

TEST_F(GpuTrain, LatencyIsNoShorterThanAStepBackToBack) {
  for (const std::string lane : {"eager", "graph"}) {
    // So large that the device decides: where the host does, it is slower back to back at times.
    CellFile cell = Cell("amp-fp16", 64);
    cell.spec.image = "224x224";
    cell.spec.lane = lane;
    cell.spec.mode = "infer";
    cell.spec.stop.min_seconds = 1;  // the 99th percentile needs a hundred requests of 5 ms
    const RunnerResult result = Run(cell);
    ASSERT_EQ(result.outcome, "ok") << lane << ": " << result.message;
    // A step back to back has no round trip of the host in it.
    EXPECT_GT(result.fields["latency_p50_ms"].get<double>(),
              0.98 * result.fields["step_p50_ms"].get<double>())
        << lane;
    EXPECT_GE(result.fields["latency_p99_ms"].get<double>(),
              result.fields["latency_p50_ms"].get<double>())
        << lane;
  }
}

TEST_F(GpuTrain, DataFromTheHostIsCopiedBesideTheSteps) {
  // Where the device decides, since the calls for a copy are work of the host.
  for (const auto& [lane, batch] : {std::pair{"eager", 256}, {"graph", 64}}) {
    CellFile cell = Cell("amp-fp16", batch);
    cell.spec.lane = lane;
    cell.spec.image = "224x224";
    const RunnerResult synthetic = Run(cell);
    cell.spec.data = "host";
    const RunnerResult host = Run(cell);
    ASSERT_EQ(synthetic.outcome, "ok") << synthetic.message;
    ASSERT_EQ(host.outcome, "ok") << host.message;
    EXPECT_EQ(host.fields["device_steps"], host.fields["steps"]);
    const double ratio =
        host.fields["throughput"].get<double>() / synthetic.fields["throughput"].get<double>();
    EXPECT_LT(ratio, 1.03) << lane << ": faster than without copies";
    // 38.5 MB at 64, beside the step: even PCIe 3.0 carries them in less than a step takes.
    EXPECT_GT(ratio, 0.7) << lane << ": copies are not beside the steps";
  }
}

TEST_F(GpuTrain, LatencyWithDataFromTheHostHasTheCopyInIt) {
  CellFile cell = Cell("amp-fp16", 256);
  cell.spec.mode = "infer";
  cell.spec.lane = "graph";
  cell.spec.image = "224x224";
  const RunnerResult synthetic = Run(cell);
  cell.spec.data = "host";
  const RunnerResult host = Run(cell);
  ASSERT_EQ(synthetic.outcome, "ok") << synthetic.message;
  ASSERT_EQ(host.outcome, "ok") << host.message;
  // 154 MB take over 1 ms even at 128 GB/s.
  EXPECT_GT(host.fields["latency_p50_ms"].get<double>(),
            synthetic.fields["latency_p50_ms"].get<double>() + 1);
}

TEST_F(GpuTrain, BusyRatioTellsAHostThatIsTooSlowFromACardThatIsBusy) {
  const RunnerResult small = Run(Cell("amp-fp16", 4));
  ASSERT_EQ(small.outcome, "ok") << small.message;
  ASSERT_TRUE(small.fields["gpu_busy_ratio"].is_number());
  EXPECT_LT(small.fields["gpu_busy_ratio"].get<double>(), 0.8);
  CellFile cell = Cell("amp-fp16", 128);
  cell.spec.image = "224x224";
  for (const std::string lane : {"eager", "graph"}) {
    cell.spec.lane = lane;
    const RunnerResult busy = Run(cell);
    ASSERT_EQ(busy.outcome, "ok") << busy.message;
    ASSERT_TRUE(busy.fields["gpu_busy_ratio"].is_number()) << lane;
    EXPECT_GT(busy.fields["gpu_busy_ratio"].get<double>(), 0.9) << lane;
    EXPECT_LE(busy.fields["gpu_busy_ratio"].get<double>(), 1.0) << lane;
  }
}

// Kernels back to back, whose time the events around them know.
TEST_F(GpuTrain, TraceHasTheKernelsAndTheirLengths) {
  const std::unique_ptr<Device> device = MakeCudaDevice("", 0);
  const at::Tensor a =
      at::ones({4096, 4096}, at::TensorOptions(at::kFloat).device(device->torch()));
  at::mm(a, a);
  device->Synchronize();
  device->BeginWindow();
  for (int i = 0; i < 10; ++i) at::mm(a, a);
  device->CountStep({}, {}, {});
  device->EndStep();
  const double seconds = device->TakeOldest();
  const auto spans = device->Trace([&] {
    for (int i = 0; i < 10; ++i) at::mm(a, a);
    device->Synchronize();
  });
  ASSERT_TRUE(spans.has_value());
  EXPECT_GE(spans->size(), 10u);
  const double traced = static_cast<double>(measure::UnionNanoseconds(*spans)) * 1e-9;
  EXPECT_NEAR(traced / seconds, 1, 0.1);
}

TEST_F(GpuTrain, TrialSaysWhatItTookAndMeasuresNothing) {
  CellFile cell = Cell("amp-fp16", 16);
  cell.trial_steps = 20;
  const RunnerResult result = Run(cell);
  ASSERT_EQ(result.outcome, "ok") << result.message;
  EXPECT_GT(result.fields["trial_used_bytes"].get<int64_t>(),
            result.fields["reserved_peak_bytes"].get<int64_t>() / 2);
  EXPECT_GT(result.fields["trial_capacity_bytes"], result.fields["trial_used_bytes"]);
  EXPECT_FALSE(result.fields.contains("throughput"));
}

TEST_F(GpuTrain, AllocatedIsAtMostReserved) {  // case 3
  const RunnerResult result = Run(Cell("amp-fp16", 16));
  ASSERT_EQ(result.outcome, "ok") << result.message;
  const int64_t allocated = result.fields["allocated_peak_bytes"].get<int64_t>();
  EXPECT_GT(allocated, 25557032 * 4);
  EXPECT_LE(allocated, result.fields["reserved_peak_bytes"].get<int64_t>());
}

// In TF32 the workspaces of cuDNN's search are larger than the step.
TEST_F(GpuTrain, PeaksAreOfTheStepsAndNotOfTheSearch) {
  int64_t used = 0;
  {
    CellFile cell = Cell("tf32", 256);
    cell.trial_steps = 5;
    const RunnerResult trial = Run(cell);
    ASSERT_EQ(trial.outcome, "ok") << trial.message;
    used = trial.fields["trial_used_bytes"].get<int64_t>();
  }
  const RunnerResult result = Run(Cell("tf32", 256));
  ASSERT_EQ(result.outcome, "ok") << result.message;
  EXPECT_LE(result.fields["reserved_peak_bytes"].get<int64_t>(), used);
}

TEST_F(GpuTrain, ContextIsThereBeforeTheFirstTensor) {
  const RunnerResult result = Run(Cell("amp-fp16", 16));
  ASSERT_EQ(result.outcome, "ok") << result.message;
  // A bare context, or one in which a test before has been: never nothing, never more than there
  // is.
  EXPECT_GT(result.fields["context_used_bytes"].get<int64_t>(), int64_t{50} << 20);
  EXPECT_LT(result.fields["context_used_bytes"].get<int64_t>(),
            MakeCudaDevice("", 0)->MemoryBytes());
}

TEST_F(GpuTrain, BatchThatDoesNotFitIsMemLimit) {  // case 1
  CellFile cell = Cell("fp32", 1000000);
  cell.spec.image = "224x224";
  const RunnerResult result = Run(cell);
  EXPECT_EQ(result.outcome, "mem_limit") << result.message;
  EXPECT_EQ(result.reason, "out_of_memory");
}

TEST_F(GpuTrain, LossScalingSkipsAlmostNothing) {  // case 31
  const RunnerResult result = Run(Cell("amp-fp16", 32));
  ASSERT_EQ(result.outcome, "ok") << result.message;
  EXPECT_LE(result.fields["skipped_steps"].get<int64_t>(),
            1 + result.fields["steps"].get<int64_t>() / 100);
  EXPECT_GT(result.fields["loss_scale"].get<double>(), 0);
}

TEST_F(GpuTrain, UnknownUuidIsNotAnotherCard) {  // case 7
  CellFile cell = Cell("fp32", 1);
  cell.device_uuid = "GPU-00000000-0000-0000-0000-000000000000";
  const RunnerResult result = Run(cell);
  EXPECT_EQ(result.outcome, "fail");
  EXPECT_NE(result.message.find("no CUDA device has the UUID"), std::string::npos);
}

TEST_F(GpuTrain, StackNamesWhatIsLoaded) {
  TrainRunner runner;
  const nlohmann::json info = runner.StackInfo();
  EXPECT_TRUE(info["versions"]["cuda"].is_string());
  EXPECT_TRUE(info["versions"]["cudnn"].is_string());
  EXPECT_TRUE(info["versions"]["nccl"].is_string());
  EXPECT_FALSE(info["arch_list"].empty());
}

}  // namespace
}  // namespace assay::train
