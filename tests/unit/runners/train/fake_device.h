// Devices that the tests steer.
#ifndef ASSAY_TESTS_UNIT_RUNNERS_TRAIN_FAKE_DEVICE_H_
#define ASSAY_TESTS_UNIT_RUNNERS_TRAIN_FAKE_DEVICE_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runners/train/device/device.h"
#include "runners/train/lanes/lane.h"

namespace assay::train {

// A device that queues: every step takes `step_seconds` of its own time, and is reached only when
// waited for, so that the queue fills as far as it may.
class QueueingDevice : public Device {
 public:
  explicit QueueingDevice(double step_seconds) : step_seconds_(step_seconds) {}
  c10::Device torch() const override { return c10::kCPU; }
  int64_t MemoryBytes() const override { return int64_t{1} << 30; }
  std::optional<int64_t> CacheBytes() const override { return std::nullopt; }
  MemoryPeaks Peaks() const override { return {}; }
  void ForgetPeaks() override { peaks_forgotten_after.push_back(ended_); }
  DeviceMemory Memory() const override { return {0, MemoryBytes()}; }
  std::optional<int64_t> ContextUsedBytes() const override { return std::nullopt; }
  StackVersions Versions() const override { return {}; }
  int ComputeCapability() const override { return compute_capability; }
  bool SawOutOfMemory() const override { return false; }
  void Synchronize() override {}
  void BeginWindow() override { ended_ = taken_ = counted_ = 0; }
  void CountStep(const at::Tensor&, const at::Tensor&, const at::Tensor&) override { ++counted_; }
  void EndStep() override {
    ++ended_;
    most_pending = std::max(most_pending, PendingSteps());
  }
  int64_t PendingSteps() const override { return ended_ - taken_; }
  bool OldestReached() override { return false; }
  double TakeOldest() override {
    ++taken_;
    return step_seconds_;
  }
  double WindowSeconds() override { return static_cast<double>(taken_) * step_seconds_; }
  StepCounts Counts() override { return {counted_, 0, 0, 0}; }
  void PrepareToRecord() override { prepared = true; }
  // Replaying runs the work, as a device would; recording runs nothing.
  std::unique_ptr<Recording> Record(const std::function<void()>& work) override {
    class Again final : public Recording {
     public:
      explicit Again(std::function<void()> work) : work_(std::move(work)) {}
      void Replay() override { work_(); }

     private:
      const std::function<void()> work_;
    };
    ++recordings;
    return std::make_unique<Again>(work);
  }
  std::unique_ptr<CopyQueue> MakeCopyQueue() override { throw std::runtime_error("none here"); }
  std::optional<std::vector<measure::Span>> Trace(const std::function<void()>&) override {
    return std::nullopt;
  }
  int64_t QueueDepth(double) const override { return 3; }

  int64_t most_pending = 0;
  int recordings = 0;
  int compute_capability = 90;
  bool prepared = false;
  std::vector<int64_t> peaks_forgotten_after;  // steps of the window

 private:
  const double step_seconds_;
  int64_t ended_ = 0, taken_ = 0, counted_ = 0;
};

// A step that does nothing but be counted.
class CountingLane final : public Lane {
 public:
  explicit CountingLane(Device& device) : device_(device) {}
  StepOutput Step() override {
    device_.CountStep({}, {}, {});
    return {};
  }
  int64_t PrimingSteps() const override { return 2; }

 private:
  Device& device_;
};

}  // namespace assay::train

#endif  // ASSAY_TESTS_UNIT_RUNNERS_TRAIN_FAKE_DEVICE_H_
