// A device on which work takes the time that the test says, and which counts steps by itself.
#ifndef ASSAY_TESTS_UNIT_RUNNERS_PEAKS_FAKE_TIMELINE_H_
#define ASSAY_TESTS_UNIT_RUNNERS_PEAKS_FAKE_TIMELINE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>

#include "runners/peaks/timeline.h"

namespace assay::peaks {

class FakeTimeline final : public Timeline {
 public:
  // Work queued from now on takes this much longer.
  void Work(double seconds) { now_ += seconds; }

  double now() const { return now_; }

  void BeginWindow() override {
    begin_ = last_ = end_ = now_;
    counted_ = 0;
    pending_.clear();
  }
  void EndStep() override {
    pending_.push_back(now_ - end_);
    EXPECT_LE(static_cast<int64_t>(pending_.size()), kMostPending);
    end_ = now_;
    ++counted_;
  }
  int64_t PendingSteps() const override { return static_cast<int64_t>(pending_.size()); }
  double TakeOldest() override {
    const double seconds = pending_.front();
    pending_.pop_front();
    last_ += seconds;
    return seconds;
  }
  double WindowSeconds() override { return last_ - begin_; }
  void Synchronize() override {}
  int64_t CountedSteps() override { return counted_; }

 private:
  double now_ = 0, begin_ = 0, end_ = 0, last_ = 0;
  std::deque<double> pending_;
  int64_t counted_ = 0;
};

}  // namespace assay::peaks

#endif  // ASSAY_TESTS_UNIT_RUNNERS_PEAKS_FAKE_TIMELINE_H_
