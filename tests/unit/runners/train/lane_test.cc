#include "runners/train/lanes/lane.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <string>

#include "runners/train/failure.h"
#include "tests/unit/runners/train/fake_device.h"
#include "tests/unit/runners/train/tiny_model.h"

namespace assay::train {
namespace {

// A lane with all that it works on, the same from the same seed.
struct Bench {
  explicit Bench(const std::string& lane_name, bool train = true, int64_t accumulate = 1)
      : device(0.01),
        model((at::manual_seed(3), Placement{.train = train})),
        trainer(model, Precision::kFp32, accumulate, {.learning_rate = 0.1}),
        data(TinyData(4)),
        lane(MakeLane(lane_name, device, trainer, data)) {}

  QueueingDevice device;
  TinyModel model;
  Trainer trainer;
  SyntheticData data;
  std::unique_ptr<Lane> lane;
};

TEST(GraphLane, RepeatsWhatTheEagerLaneDoesBatchByBatch) {
  Bench eager("eager"), graph("graph");
  for (int i = 0; i < 30; ++i) {
    const float expected = eager.lane->Step().loss.item<float>();
    EXPECT_EQ(graph.lane->Step().loss.item<float>(), expected) << "step " << i;
  }
  const auto& a = eager.model.tensors().parameters();
  const auto& b = graph.model.tensors().parameters();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].tensor.equal(b[i].tensor)) << a[i].name;
}

TEST(GraphLane, RecordsOnceForEachBatchAfterItsEagerSteps) {
  Bench graph("graph");
  for (int64_t i = 0; i < GraphLane::kEagerSteps; ++i) graph.lane->Step();
  EXPECT_EQ(graph.device.recordings, 0);
  for (int64_t i = GraphLane::kEagerSteps; i < graph.lane->PrimingSteps(); ++i) graph.lane->Step();
  EXPECT_EQ(graph.device.recordings, graph.data.batches());
  for (int i = 0; i < 20; ++i) graph.lane->Step();
  EXPECT_EQ(graph.device.recordings, graph.data.batches());
}

TEST(GraphLane, CountsEachStepOnce) {
  Bench graph("graph");
  for (int i = 0; i < 25; ++i) graph.lane->Step();
  EXPECT_EQ(graph.device.Counts().steps, 25);
}

TEST(GraphLane, HoldsNoGradientsOfEagerStepsWhenItRecords) {
  Bench graph("graph");
  class Watching final : public QueueingDevice {
   public:
    explicit Watching(Trainer& trainer) : QueueingDevice(0.01), trainer_(trainer) {}
    std::unique_ptr<Recording> Record(const std::function<void()>& work) override {
      held = static_cast<int>(trainer_.Gradients().size());
      return QueueingDevice::Record(work);
    }
    int held = -1;

   private:
    Trainer& trainer_;
  } device(graph.trainer);
  GraphLane lane(device, graph.trainer, graph.data);
  for (int64_t i = 0; i <= GraphLane::kEagerSteps; ++i) lane.Step();
  EXPECT_EQ(device.held, 0);
}

TEST(GraphLane, InferenceGivesTheSameOutputs) {
  Bench eager("eager", /*train=*/false), graph("graph", /*train=*/false);
  for (int i = 0; i < 15; ++i) {
    const at::Tensor expected = eager.lane->Step().logits;
    EXPECT_TRUE(graph.lane->Step().logits.equal(expected)) << "step " << i;
  }
}

TEST(CpuDevice, RecordsNothing) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  EXPECT_THROW(device->PrepareToRecord(), CannotRecord);
  EXPECT_THROW(device->Record([] {}), CannotRecord);
}

TEST(Failure, WhatCannotBeRecordedIsUnsupportedAndSaysWhy) {
  const auto error = std::make_exception_ptr(CannotRecord(
      "CUDA error: operation not permitted when stream is capturing\nSearch for `x' in the docs"));
  const RunnerResult result = ClassifyException(error, false);
  EXPECT_EQ(result.outcome, "unsupported");
  EXPECT_EQ(result.reason, "lane_not_in_stack");
  EXPECT_NE(result.message.find("operation not permitted when stream is capturing"),
            std::string::npos);
  EXPECT_EQ(result.message.find("Search for"), std::string::npos);
}

TEST(Failure, RecordingErrorsAreToldFromOthers) {
  for (const char* text : {"CUDA error: operation not permitted when stream is capturing",
                           "CUDA error: operation failed due to a previous error during capture",
                           "CUDA error: operation would result in a merge of separate capture "
                           "sequences",
                           "Cannot copy between CPU and CUDA tensors during CUDA graph capture "
                           "unless the CPU tensor is pinned."}) {
    EXPECT_TRUE(IsRecordingError(text)) << text;
  }
  EXPECT_FALSE(IsRecordingError("CUDA error: an illegal memory access was encountered"));
  EXPECT_FALSE(IsRecordingError("CUDA out of memory. Tried to allocate 2.00 GiB"));
}

}  // namespace
}  // namespace assay::train
