// Latency: how long one request of inference takes when no other is in flight, by the host's clock:
// what somebody waits for, which throughput back to back does not say. A pass of its own, after the
// window.
//
// A request is one batch: from before its step is queued until the device is done with it. Its
// input lies where the data has it (on the device with synthetic data; with data from the host the
// copy is part of it), its output stays on the device.
//
// Pure but for the device and the lane that it is given. Thread rule: one thread.
#ifndef ASSAY_RUNNERS_TRAIN_LATENCY_H_
#define ASSAY_RUNNERS_TRAIN_LATENCY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "runners/common/record_writer.h"
#include "runners/train/device/device.h"
#include "runners/train/lanes/lane.h"

namespace assay::train {

struct Latency {
  int64_t requests = 0;
  // Each only where there are enough requests to have it: 95 of 20, 99 of 100.
  std::optional<double> p50_seconds, p95_seconds, p99_seconds;
};

Latency LatencyOf(std::span<const double> request_seconds);

// Seconds of the host's steady clock; a test's own.
using HostSeconds = std::function<double()>;
double SteadySeconds();

// For `seconds`, or kMostRequests; one request at least. Progress after each.
Latency MeasureLatency(Device& device, Lane& lane, double seconds, RecordWriter& records,
                       const HostSeconds& now = SteadySeconds);

// The first ones, after a window with a full queue, are not those of a device that waits.
inline constexpr int kUncountedRequests = 5;
inline constexpr int64_t kMostRequests = 1000;

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_LATENCY_H_
