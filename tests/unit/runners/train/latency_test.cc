#include "runners/train/latency.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/runners/train/fake_device.h"

namespace assay::train {
namespace {

// Time passes only where the device is waited for: 1/32 s for each step that was queued and, as on
// a device that was busy, four times as long for the first ones.
constexpr double kRequest = 1.0 / 32;

class SlowDevice final : public QueueingDevice {
 public:
  SlowDevice() : QueueingDevice(kRequest) {}
  void CountStep(const at::Tensor&, const at::Tensor&, const at::Tensor&) override {
    ++queued_;
    most_queued = std::max(most_queued, queued_);
  }
  void Synchronize() override {
    for (; queued_ > 0; --queued_) now += ++done <= kUncountedRequests ? 0.125 : kRequest;
  }

  double now = 100;
  int done = 0, most_queued = 0;

 private:
  int queued_ = 0;
};

Latency Measured(SlowDevice& device, double seconds) {
  RecordWriter records(open("/dev/null", O_WRONLY | O_CLOEXEC), true);
  CountingLane lane(device);
  return MeasureLatency(device, lane, seconds, records, [&] { return device.now; });
}

TEST(MeasureLatency, IsTheTimeUntilTheDeviceIsDone) {
  SlowDevice device;
  const Latency latency = Measured(device, 3);
  EXPECT_DOUBLE_EQ(latency.p50_seconds.value(), kRequest);
  EXPECT_DOUBLE_EQ(latency.p95_seconds.value(), kRequest);  // the first ones are not counted
}

TEST(MeasureLatency, HasOneRequestInFlight) {
  SlowDevice device;
  Measured(device, 3);
  EXPECT_EQ(device.most_queued, 1);
}

TEST(MeasureLatency, EndsAfterItsTimeOrItsMostRequests) {
  SlowDevice device;
  const Latency latency = Measured(device, 3);
  EXPECT_EQ(latency.requests, 76);  // (3 - 5 * 0.125) * 32
  SlowDevice longer;
  EXPECT_EQ(Measured(longer, 3600).requests, kMostRequests);
}

TEST(MeasureLatency, ADeviceThatIsSlowerThanItsTimeHasOneRequest) {
  SlowDevice device;
  const Latency latency = Measured(device, 0.01);
  EXPECT_EQ(latency.requests, 1);
  EXPECT_TRUE(latency.p50_seconds.has_value());
}

TEST(LatencyOf, PercentilesNeedRequestsEnough) {
  const std::vector<double> some(19, 0.5), more(99, 0.5), enough(100, 0.5);
  EXPECT_FALSE(LatencyOf(some).p95_seconds.has_value());
  EXPECT_TRUE(LatencyOf(more).p95_seconds.has_value());
  EXPECT_FALSE(LatencyOf(more).p99_seconds.has_value());
  EXPECT_TRUE(LatencyOf(enough).p99_seconds.has_value());
}

}  // namespace
}  // namespace assay::train
