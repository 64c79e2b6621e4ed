#include "runners/train/lanes/lane.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "runners/train/device/input_checksum.h"
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

// Claims to rotate, and gives the same batch each time.
class StuckData final : public DataSource {
 public:
  explicit StuckData(SyntheticData& data) : batch_(data.Next()), batches_(data.batches()) {}
  const Batch& Next() override { return batch_; }
  int64_t batches() const override { return batches_; }
  int64_t places() const override { return batches_; }
  void BringAhead(bool) override {}

 private:
  const Batch& batch_;
  const int64_t batches_;
};

TEST(InputChecksum, EachLaneShowsWhetherItsDataRotate) {
  for (const bool train : {true, false}) {
    Bench bench("eager", train);
    const std::unique_ptr<Device> device = MakeCpuDevice();
    device->BeginWindow();
    EagerLane lane(*device, bench.trainer, bench.data);
    for (int i = 0; i < 20; ++i) lane.Step();
    EXPECT_EQ(device->Counts().inputs, 8);
    StuckData stuck(bench.data);
    device->BeginWindow();
    EagerLane bad(*device, bench.trainer, stuck);
    for (int i = 0; i < 20; ++i) bad.Step();
    EXPECT_EQ(device->Counts().inputs, 1);
    EXPECT_EQ(device->Counts().steps, 20);
  }
}

TEST(InputChecksum, OrderPlaceAndEachWordLookedAtCount) {
  std::vector<uint32_t> words(1000);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i * 2654435761U);
  const auto sum = [&](int64_t count) { return ChecksumShare(words.data(), count, 0, 1); };
  const uint64_t whole = sum(1000);
  EXPECT_NE(whole, sum(700));
  std::swap(words[0], words[3]);  // 1000 / 256: every third word
  EXPECT_NE(whole, sum(1000));
  std::swap(words[0], words[3]);
  words[765] ^= 1;  // the last of them
  EXPECT_NE(whole, sum(1000));
  words[765] ^= 1;
  // In shares, as the threads of a warp take them.
  uint64_t shares = 0;
  for (int64_t thread = 0; thread < 32; ++thread) {
    shares ^= ChecksumShare(words.data(), 1000, thread, 32);
  }
  EXPECT_EQ(shares, whole);
  EXPECT_EQ(sum(0), 0u);
  EXPECT_NE(sum(2), sum(1));
}

TEST(InputChecksum, CountsNoMoreThanItHasRoomFor) {
  int64_t seen = 0;
  std::array<uint64_t, kMostInputs> list{};
  for (uint64_t i = 0; i < 100; ++i) NoteChecksum(i % 20, &seen, list.data());
  EXPECT_EQ(seen, kMostInputs);
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
