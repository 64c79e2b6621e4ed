// FakeNvml: an NVML that was captured as JSON, for tests and for `assay-agent --devices FILE`.
//
// {"driver_version": "535.54.03",
//  "init_error": "LIB_RM_VERSION_MISMATCH",          optional; then every call fails with it
//  "devices": [{"uuid": "GPU-...", "name": "...", "index": 0, "memory_total_mib": 24265,
//    "compute_capability": [8, 6], "sm_count": 82, "pci_bus_id": "00000000:01:00.0",
//    "ecc_enabled": false, "ecc_corrected_volatile": 0, "ecc_uncorrected_volatile": 0,
//    "remapped_rows": 0, "remap_pending": false, "remap_failed": false, "xids": [],
//    "persistence": true, "pcie_generation": 4, "pcie_generation_max": 4, "pcie_width": 16,
//    "pcie_width_max": 16, "power_limit_watts": 350, "power_limit_default_watts": 350,
//    "sm_clock_max_mhz": 2100, "sm_clock_application_mhz": 1695,
//    "sm_clock_application_default_mhz": 1695, "memory_clock_application_mhz": 9751,
//    "memory_clock_application_default_mhz": 9751, "processes": [],
//    "sample": {"power_watts": 31.2, "sm_clock_mhz": 210, "memory_clock_mhz": 405,
//               "temperature_celsius": 34, "memory_used_mib": 1, "throttle_reasons": 1,
//               "energy_joules": 12345.6},
//    "heat": {"idle_celsius": 34, "busy_celsius": 70, "seconds": 20, "clock_loss_ratio": 0.05},
//    "mig_slices": [{"uuid": "MIG-...", "name": "...", "profile": "1g.5gb",
//                    "memory_total_mib": 4864, "sm_count": 14, "sample": {...}}]}]}
//
// `heat`: the card is taken to be under load while it is sampled at least once a second, and its
// temperature follows as an exponential with that time constant; at busy_celsius its SM clock is
// clock_loss_ratio below that of `sample`.
//
// A key that is absent or null stands for NOT_SUPPORTED; `uuid`, `name` and `memory_total_mib` must
// be there. Unknown keys are refused, since a misspelt one would silently read as not supported.
#ifndef ASSAY_AGENT_TELEMETRY_FAKE_NVML_H_
#define ASSAY_AGENT_TELEMETRY_FAKE_NVML_H_

#include <map>
#include <memory>
#include <string>

#include "agent/telemetry/nvml.h"
#include "common/clock/clock.h"
#include "common/sync/mutex.h"

namespace assay {

// `heat` of a card, and how warm it was when it was last asked.
struct FakeHeat {
  double idle_celsius = 0, busy_celsius = 0, seconds = 1, clock_loss_ratio = 0;
  std::optional<double> celsius;  // at `at`; none before the first question
  BootTime at{};
};

class FakeNvml final : public Nvml {
 public:
  // InvalidArgument with one sentence that names the device and key.
  static absl::StatusOr<std::unique_ptr<FakeNvml>> Parse(const std::string& json,
                                                         const std::string& file_name);
  // NotFound and the like where the file cannot be read; 16 MiB at most.
  static absl::StatusOr<std::unique_ptr<FakeNvml>> Load(const std::string& path);

  explicit FakeNvml(NvmlSystem system);

  absl::StatusOr<NvmlSystem> Describe() override;
  absl::StatusOr<NvmlSample> Sample(const std::string& uuid) override;
  absl::StatusOr<NvmlState> State(const std::string& uuid) override;
  absl::StatusOr<NvmlLink> Link(const std::string& uuid) override;
  absl::StatusOr<std::vector<int64_t>> Xids(const std::string& uuid) override;
  absl::StatusOr<std::vector<int64_t>> ProcessIds(const std::string& uuid) override;
  bool captured() const override { return true; }
  bool captured_heats(const std::string& uuid) const override;

  // For tests: the clock of `heat`, which outlives this; the boot clock otherwise.
  void SetClock(const Clock* clock);
  // For tests: what the next calls answer.
  void SetSample(const std::string& uuid, const NvmlSample& sample);
  void SetState(const std::string& uuid, const NvmlState& state);
  void SetLink(const std::string& uuid, const NvmlLink& link);
  void SetProcessIds(const std::string& uuid, std::vector<int64_t> pids);
  void AddXid(const std::string& uuid, int64_t xid);
  void Fail(const absl::Status& status);
  int64_t samples_taken() const;

 private:
  NvmlSample Heated(FakeHeat& heat, NvmlSample sample) ASSAY_REQUIRES(mutex_);

  mutable Mutex mutex_;
  const Clock* clock_ ASSAY_GUARDED_BY(mutex_) = nullptr;
  std::map<std::string, FakeHeat> heats_ ASSAY_GUARDED_BY(mutex_);
  NvmlSystem system_ ASSAY_GUARDED_BY(mutex_);
  absl::Status failure_ ASSAY_GUARDED_BY(mutex_);
  std::map<std::string, NvmlSample> samples_ ASSAY_GUARDED_BY(mutex_);
  std::map<std::string, NvmlState> states_ ASSAY_GUARDED_BY(mutex_);
  std::map<std::string, NvmlLink> links_ ASSAY_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<int64_t>> pids_ ASSAY_GUARDED_BY(mutex_);
  // Of the devices that tell them, those not asked for yet.
  std::map<std::string, std::vector<int64_t>> xids_ ASSAY_GUARDED_BY(mutex_);
  int64_t samples_taken_ ASSAY_GUARDED_BY(mutex_) = 0;
};

}  // namespace assay

#endif  // ASSAY_AGENT_TELEMETRY_FAKE_NVML_H_
