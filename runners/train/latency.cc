#include "runners/train/latency.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "common/measure/percentile.h"

namespace assay::train {

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Latency LatencyOf(std::span<const double> request_seconds) {
  Latency latency;
  latency.requests = static_cast<int64_t>(request_seconds.size());
  latency.p50_seconds = measure::Median(request_seconds);
  if (latency.requests >= 20) latency.p95_seconds = measure::Percentile(request_seconds, 95);
  if (latency.requests >= 100) latency.p99_seconds = measure::Percentile(request_seconds, 99);
  return latency;
}

Latency MeasureLatency(Device& device, Lane& lane, double seconds, RecordWriter& records,
                       const HostSeconds& now) {
  const auto request = [&] {
    const double start = now();
    lane.Step();
    device.Synchronize();
    return now() - start;
  };
  std::vector<double> taken;
  device.Synchronize();
  const double start = now();
  double elapsed = 0;
  for (int i = 0; i < kUncountedRequests && elapsed < seconds; ++i) {
    request();
    elapsed = now() - start;
  }
  do {
    taken.push_back(request());
    elapsed = now() - start;
    records.Progress(taken.size(), 0, std::max(0.0, seconds - elapsed));
  } while (elapsed < seconds && static_cast<int64_t>(taken.size()) < kMostRequests);
  return LatencyOf(taken);
}

}  // namespace assay::train
