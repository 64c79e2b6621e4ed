// Ports: what a gang's part needs of the node it runs on. Implemented in agent/inventory and
// agent/telemetry; faked in tests.
//
// Thread rule: all calls come from the agent's loop thread. None may block for longer than 100 ms,
// but Inventory::Collect, which is called before the loop starts (and, on demand, between gangs).
#ifndef ASSAY_AGENT_CELL_PORTS_H_
#define ASSAY_AGENT_CELL_PORTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/fleet/inventory.h"
#include "common/results/record.h"

namespace assay {

class Inventory {
 public:
  virtual ~Inventory() = default;
  // Devices and stacks as they are now. Trouble (driver mismatch, a broken manifest, a small
  // /dev/shm) is a warning in the inventory, never an exception or an abort.
  virtual NodeInventory Collect() = 0;
};

// An installed stack, as its manifest and its program's --stack-info describe it.
struct StackProgram {
  std::string program;  // absolute path
  Stack stack;
  // Set for the runner over the allow-listed environment of the agent (LD_LIBRARY_PATH, ...).
  std::map<std::string, std::string> environment;
};

class StackCatalog {
 public:
  virtual ~StackCatalog() = default;
  // NotFound names the stacks there are; FailedPrecondition gives a stack's unusable_reason.
  virtual absl::StatusOr<StackProgram> Find(const std::string& name) const = 0;
};

// What one rank's process used, from wait4 when it was reaped.
struct ProcessUsage {
  uint64_t peak_resident_bytes = 0;
  double user_seconds = 0;
  double system_seconds = 0;
};

// A device that spoilt the attempt, whatever its ranks said.
struct DeviceFault {
  std::string uuid;
  std::string_view reason;  // a code of common/results/outcome.h
  std::string message;
};

// Samples the devices of one attempt at 10 Hz from its own thread while it lives; the destructor
// stops the thread. `device_used_before_bytes` and `exclusive` are taken in Begin, before a rank is
// spawned.
class TelemetrySession {
 public:
  virtual ~TelemetrySession() = default;
  // The measured window, by the phase records of the attempt's lowest local rank. Means of power,
  // clock and throttling and the energy are of the window; device_used_bytes is the peak of the
  // whole session. Without both calls window fields stay not known.
  virtual void WindowBegin() = 0;
  virtual void WindowEnd() = 0;
  // Called once, after every rank is gone: the agent-sourced fields (catalog/fields.yaml, source
  // `agent`), one figure for all devices of the session: sums of power and energy, maxima of
  // temperature and of memory in use, means of clocks. `usage` has one entry a rank and serves CPU
  // devices (device_used_bytes is its largest peak_resident_bytes).
  virtual Record Finish(std::span<const ProcessUsage> usage) = 0;
  // Called once, after Finish: at most one a device.
  virtual std::vector<DeviceFault> Faults() { return {}; }
};

// What the sensors of some GPUs say of their heat; the worst of them stands for all.
struct HeatReading {
  // kNotYet: one has not answered so far. kMissing: one has no thermometer or no SM clock.
  enum class Sensors { kNotYet, kThere, kMissing };
  Sensors sensors = Sensors::kNotYet;
  bool flat = false;
  std::optional<double> celsius;
  std::optional<double> celsius_per_second;
  std::optional<double> clock_ratio_per_second;  // of the clock
};

// Watches GPUs until they are flat under load, from its own thread while it lives.
class HeatWatch {
 public:
  virtual ~HeatWatch() = default;
  // Only what comes after this counts.
  virtual void LoadBegan() = 0;
  virtual HeatReading Read() = 0;
};

class DeviceTelemetry {
 public:
  virtual ~DeviceTelemetry() = default;
  // Never null. A device that is unknown or gone yields a session whose fields stay not known.
  virtual std::unique_ptr<TelemetrySession> Begin(std::span<const std::string> device_uuids) = 0;
  // Null where there is no heat to watch: a processor, a simulated device, no driver.
  virtual std::unique_ptr<HeatWatch> WatchHeat(std::span<const std::string>) { return nullptr; }
};

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_PORTS_H_
