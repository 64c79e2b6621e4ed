#include "runners/train/busy_pass.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/unit/runners/train/fake_device.h"

namespace assay::train {
namespace {

// Work of 7 ms in each step, which tracing spreads to 15.
class TracedDevice final : public QueueingDevice {
 public:
  TracedDevice() : QueueingDevice(0.01) {}
  std::optional<std::vector<measure::Span>> Trace(const std::function<void()>& work) override {
    if (fails) throw std::runtime_error("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
    work();
    std::vector<measure::Span> spans;
    for (int64_t i = 0; i < Counts().steps; ++i) {
      spans.push_back({i * 15'000'000, i * 15'000'000 + 7'000'000});
    }
    return spans;
  }
  bool fails = false;
};

TEST(BusyPass, IsTheWorkOfAStepOverAStepThatNothingTraces) {
  TracedDevice device;
  CountingLane lane(device);
  EXPECT_NEAR(MeasureBusyRatio(device, lane, 0.010).value(), 0.7, 1e-9);
  EXPECT_EQ(device.Counts().steps, TracedSteps(0.010));
}

TEST(BusyPass, IsNotKnownWhereNothingTraces) {
  QueueingDevice device(0.01);
  CountingLane lane(device);
  EXPECT_FALSE(MeasureBusyRatio(device, lane, 0.010).has_value());
}

TEST(BusyPass, ThatFailsCostsTheFigureAndNotTheCell) {
  TracedDevice device;
  device.fails = true;
  CountingLane lane(device);
  EXPECT_FALSE(MeasureBusyRatio(device, lane, 0.010).has_value());
}

TEST(TracedSteps, AThirdOfASecondWithinBounds) {
  EXPECT_EQ(TracedSteps(0.030), 10);
  EXPECT_EQ(TracedSteps(0.001), 20);
  EXPECT_EQ(TracedSteps(2), 3);
  EXPECT_EQ(TracedSteps(0), 3);
}

}  // namespace
}  // namespace assay::train
