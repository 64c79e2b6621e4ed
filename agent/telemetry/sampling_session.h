// SamplingSession: the readings of one attempt's GPUs, from before its first process to after its
// last, by a thread of its own that sleeps between samples.
//
// At 10 Hz: power, clocks, temperature, throttle reasons, energy, memory in use (WindowStatistics).
// Once a second: the process list and the PCIe link, in the window, and Xids. Before and after:
// what the device is set to and its counts of errors (DeviceHealth). The constructor waits for the
// first reading of memory and processes and Finish for the last of errors, each at most 80 ms; what
// has not answered by then stays not known. Thread rule: as TelemetrySession; the Nvml must outlive
// it.
#ifndef ASSAY_AGENT_TELEMETRY_SAMPLING_SESSION_H_
#define ASSAY_AGENT_TELEMETRY_SAMPLING_SESSION_H_

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "agent/cell/ports.h"
#include "agent/host/throttle_watch.h"
#include "agent/telemetry/device_health.h"
#include "agent/telemetry/exclusivity.h"
#include "agent/telemetry/nvml.h"
#include "agent/telemetry/window_statistics.h"
#include "common/clock/clock.h"
#include "common/sync/mutex.h"

namespace assay {

struct TelemetryOptions {
  std::chrono::milliseconds period{100};
  std::string proc_root = "/proc";
  std::string sys_root = "/sys";
};

class SamplingSession final : public TelemetrySession {
 public:
  // `base` is what is known of the attempt beforehand. `nvml` and `clock` outlive this.
  SamplingSession(Nvml* nvml, const Clock* clock, TelemetryOptions options,
                  std::vector<Device> devices, Record base);
  ~SamplingSession() override;

  void WindowBegin() override;
  void WindowEnd() override;
  Record Finish(std::span<const ProcessUsage> usage) override;
  std::vector<DeviceFault> Faults() override;

 private:
  void Work();
  void ReadBefore();
  void ReadAfter();
  void SampleOne(size_t index);
  void ReadSeldom();
  void ReadXids();
  // Names the foreign processes that have none yet.
  void NameForeign() ASSAY_REQUIRES(mutex_);
  bool InWindow();
  bool SleepUntilNext();
  void AwaitUntil(const bool& done) ASSAY_REQUIRES(mutex_);

  Nvml* const nvml_;
  const Clock* const clock_;
  const TelemetryOptions options_;
  const std::vector<Device> devices_;
  const Record base_;
  Mutex mutex_;
  CondVar changed_;
  WindowStatistics statistics_ ASSAY_GUARDED_BY(mutex_);
  ThrottleWatch throttling_ ASSAY_GUARDED_BY(mutex_);
  DeviceHealth health_ ASSAY_GUARDED_BY(mutex_);
  Exclusivity exclusivity_ ASSAY_GUARDED_BY(mutex_);
  std::map<int64_t, std::string> foreign_names_ ASSAY_GUARDED_BY(mutex_);
  std::optional<uint64_t> used_before_ ASSAY_GUARDED_BY(mutex_);
  bool first_done_ ASSAY_GUARDED_BY(mutex_) = false;
  bool before_closed_ ASSAY_GUARDED_BY(mutex_) = false;
  bool sample_now_ ASSAY_GUARDED_BY(mutex_) = false;
  bool stopping_ ASSAY_GUARDED_BY(mutex_) = false;
  bool after_wanted_ ASSAY_GUARDED_BY(mutex_) = false;
  bool after_done_ ASSAY_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_TELEMETRY_SAMPLING_SESSION_H_
