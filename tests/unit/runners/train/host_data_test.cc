#include "runners/train/data/host_data.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "runners/train/lanes/lane.h"
#include "tests/unit/runners/train/fake_device.h"
#include "tests/unit/runners/train/tiny_model.h"

namespace assay::train {
namespace {

// What two streams have been told to wait for. A copy is done at once, which is the earliest that
// it may be, so that one which does not wait for the step that reads its place spoils that step.
struct Streams {
  int64_t steps = 0, steps_waited_for = 0;    // queued; of which copies wait
  int64_t copies = 0, copies_waited_for = 0;  // queued; of which steps wait
  std::map<const void*, int64_t> read_by;     // the last step that reads an address, from 1
  std::map<const void*, int64_t> written_by;  // the last copy to it, from 1
  std::vector<const void*> targets;
};

class LoggedQueue final : public CopyQueue {
 public:
  explicit LoggedQueue(Streams& streams) : streams_(streams) {}
  void WaitForSteps() override { streams_.steps_waited_for = streams_.steps; }
  void Copy(const at::Tensor& to, const at::Tensor& from) override {
    EXPECT_LE(streams_.read_by[to.data_ptr()], streams_.steps_waited_for)
        << "a copy over what a step may still read";
    to.copy_(from);
    streams_.written_by[to.data_ptr()] = ++streams_.copies;
    streams_.targets.push_back(to.data_ptr());
  }
  void StepsWait() override { streams_.copies_waited_for = streams_.copies; }

 private:
  Streams& streams_;
};

class FedDevice final : public QueueingDevice {
 public:
  FedDevice() : QueueingDevice(0.01) {}
  std::unique_ptr<CopyQueue> MakeCopyQueue() override {
    return std::make_unique<LoggedQueue>(streams);
  }
  // Queues a step that reads the batch.
  void Read(const Batch& batch) {
    ++streams.steps;
    for (const at::Tensor& tensor : {batch.images, batch.labels}) {
      EXPECT_LE(streams.written_by[tensor.data_ptr()], streams.copies_waited_for)
          << "a step that may read what is still being copied";
      streams.read_by[tensor.data_ptr()] = streams.steps;
    }
  }
  Streams streams;
};

std::vector<float> FirstPixels(FedDevice& device, HostData& data, int steps) {
  std::vector<float> pixels;
  for (int i = 0; i < steps; ++i) {
    const Batch& batch = data.Next();
    device.Read(batch);
    pixels.push_back(batch.images.flatten()[0].item<float>());
  }
  return pixels;
}

TEST(HostData, EachStepSeesTheNextOfEightBatches) {
  FedDevice device;
  HostData data(device, TinyShape(2));
  ASSERT_EQ(data.batches(), 8);
  const std::vector<float> pixels = FirstPixels(device, data, 24);
  for (size_t i = 8; i < pixels.size(); ++i) EXPECT_EQ(pixels[i], pixels[i - 8]);
  for (size_t i = 1; i < pixels.size(); ++i) EXPECT_NE(pixels[i], pixels[i - 1]);
}

TEST(HostData, TheNextBatchIsOnItsWayWhileAStepComputes) {
  FedDevice device;
  HostData data(device, TinyShape(2));
  for (int64_t step = 1; step < 10; ++step) {
    const Batch& batch = data.Next();
    EXPECT_EQ(device.streams.copies, 2 * (step + 1));       // images and labels, one step ahead
    EXPECT_EQ(device.streams.copies_waited_for, 2 * step);  // the step waits for its own alone
    EXPECT_NE(device.streams.targets.back(), batch.labels.data_ptr());
    device.Read(batch);
  }
}

TEST(HostData, OneAtATimeBringsEachBatchWithItsStep) {
  FedDevice device;
  HostData data(device, TinyShape(2));
  FirstPixels(device, data, 5);
  data.BringAhead(false);
  for (int i = 0; i < 5; ++i) {
    const int64_t before = device.streams.copies;
    const Batch& batch = data.Next();
    EXPECT_EQ(device.streams.copies, before + 2);
    EXPECT_EQ(device.streams.copies_waited_for, device.streams.copies);
    EXPECT_EQ(device.streams.targets.back(), batch.labels.data_ptr());
    device.Read(batch);
  }
  data.BringAhead(true);
  const std::vector<float> pixels = FirstPixels(device, data, 16);
  for (size_t i = 8; i < pixels.size(); ++i) EXPECT_EQ(pixels[i], pixels[i - 8]);
}

TEST(HostData, TheGraphLaneRecordsOncePerPlace) {
  FedDevice device;
  HostData data(device, TinyShape(4));
  TinyModel model({});
  Trainer trainer(model, Precision::kFp32, 1);
  GraphLane lane(device, trainer, data);
  for (int i = 0; i < 20; ++i) lane.Step();
  EXPECT_EQ(device.recordings, 2);
}

TEST(DataSource, KeepsEightBatchesOrWhatAQuarterOfMemoryHolds) {
  EXPECT_EQ(BatchesThatFit(100, 100000), 8);
  EXPECT_EQ(BatchesThatFit(100, 1200), 3);
  EXPECT_EQ(BatchesThatFit(100, 10), 1);
}

}  // namespace
}  // namespace assay::train
