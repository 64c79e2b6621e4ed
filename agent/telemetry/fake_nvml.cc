#include "agent/telemetry/fake_nvml.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "common/status/status.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr size_t kMostBytes = 16 << 20;
constexpr double kMib = 1048576;

// Thrown inside Parse only, which turns it into a status.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void OnlyKeys(const json& object, const std::string& where,
              std::initializer_list<const char*> keys) {
  if (!object.is_object()) throw Fault(where + " is not an object");
  for (const auto& item : object.items()) {
    bool known = false;
    for (const char* key : keys) known = known || item.key() == key;
    if (!known) throw Fault(fmt::format("{}: unknown key '{}'", where, item.key()));
  }
}

template <class T>
std::optional<T> Maybe(const json& object, const char* key, const std::string& where,
                       double factor = 1) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  if constexpr (std::is_same_v<T, bool>) {
    if (!found->is_boolean()) throw Fault(fmt::format("{}: '{}' is not true or false", where, key));
    return found->get<bool>();
  } else {
    if (!found->is_number()) throw Fault(fmt::format("{}: '{}' is not a number", where, key));
    const double value = found->get<double>() * factor;
    if (!(value >= 0) || value > 9e15) {
      throw Fault(fmt::format("{}: '{}' is out of range", where, key));
    }
    if (std::is_same_v<T, int> && value > 2e9) {
      throw Fault(fmt::format("{}: '{}' is out of range", where, key));
    }
    return static_cast<T>(value);
  }
}

std::string Text(const json& object, const char* key, const std::string& where, bool needed) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) {
    if (needed) throw Fault(fmt::format("{}: '{}' is missing", where, key));
    return "";
  }
  if (!found->is_string()) throw Fault(fmt::format("{}: '{}' is not a text", where, key));
  return found->get<std::string>();
}

NvmlSample SampleOf(const json& object, const std::string& where) {
  OnlyKeys(object, where,
           {"power_watts", "sm_clock_mhz", "memory_clock_mhz", "temperature_celsius",
            "memory_used_mib", "throttle_reasons", "energy_joules"});
  NvmlSample sample;
  sample.power_watts = Maybe<double>(object, "power_watts", where);
  sample.sm_clock_hertz = Maybe<double>(object, "sm_clock_mhz", where, 1e6);
  sample.memory_clock_hertz = Maybe<double>(object, "memory_clock_mhz", where, 1e6);
  sample.temperature_celsius = Maybe<double>(object, "temperature_celsius", where);
  sample.memory_used_bytes = Maybe<uint64_t>(object, "memory_used_mib", where, kMib);
  sample.throttle_reasons = Maybe<uint64_t>(object, "throttle_reasons", where);
  sample.energy_joules = Maybe<double>(object, "energy_joules", where);
  return sample;
}

uint64_t MemoryOf(const json& object, const std::string& where) {
  const auto bytes = Maybe<uint64_t>(object, "memory_total_mib", where, kMib);
  if (!bytes) throw Fault(where + ": 'memory_total_mib' is missing");
  return *bytes;
}

NvmlMigSlice SliceOf(const json& object, const std::string& where) {
  OnlyKeys(object, where, {"uuid", "name", "profile", "memory_total_mib", "sm_count", "sample"});
  return {Text(object, "uuid", where, true), Text(object, "name", where, true),
          Text(object, "profile", where, true), MemoryOf(object, where),
          Maybe<int>(object, "sm_count", where)};
}

// A driver's name may hold bytes that are no UTF-8, which JSON cannot: then in hexadecimal.
std::string NameOf(const json& object, const std::string& where) {
  const std::string hex = Text(object, "name_hex", where, false);
  if (hex.empty()) return Text(object, "name", where, true);
  std::string name;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    int byte = 0;
    const auto [end, error] = std::from_chars(&hex[i], &hex[i] + 2, byte, 16);
    if (error != std::errc() || end != &hex[i] + 2) {
      throw Fault(where + ": 'name_hex' is not hexadecimal");
    }
    name.push_back(static_cast<char>(byte));
  }
  return name;
}

// The keys of a device.
constexpr auto kDeviceKeys = {"uuid",
                              "name",
                              "name_hex",
                              "index",
                              "memory_total_mib",
                              "compute_capability",
                              "sm_count",
                              "pci_bus_id",
                              "ecc_enabled",
                              "ecc_corrected_volatile",
                              "ecc_uncorrected_volatile",
                              "remapped_rows",
                              "remap_pending",
                              "remap_failed",
                              "xids",
                              "persistence",
                              "sm_clock_max_mhz",
                              "sm_clock_application_mhz",
                              "sm_clock_application_default_mhz",
                              "memory_clock_application_mhz",
                              "memory_clock_application_default_mhz",
                              "pcie_generation",
                              "pcie_generation_max",
                              "pcie_width",
                              "pcie_width_max",
                              "power_limit_watts",
                              "power_limit_default_watts",
                              "processes",
                              "sample",
                              "heat",
                              "mig_slices"};

NvmlDevice DeviceOf(const json& object, int place, const std::string& where) {
  OnlyKeys(object, where, kDeviceKeys);
  NvmlDevice device;
  device.uuid = Text(object, "uuid", where, true);
  if (device.uuid.empty()) throw Fault(where + ": 'uuid' is empty");
  device.name = NameOf(object, where);
  device.index = Maybe<int>(object, "index", where).value_or(place);
  device.memory_total_bytes = MemoryOf(object, where);
  if (const auto cc = object.find("compute_capability"); cc != object.end() && !cc->is_null()) {
    if (!cc->is_array() || cc->size() != 2 || !(*cc)[0].is_number_unsigned() ||
        !(*cc)[1].is_number_unsigned() || (*cc)[0] > 1000 || (*cc)[1] > 1000) {
      throw Fault(where + ": 'compute_capability' is not like [8, 6]");
    }
    device.cc_major = (*cc)[0].get<int>();
    device.cc_minor = (*cc)[1].get<int>();
  }
  device.sm_count = Maybe<int>(object, "sm_count", where);
  device.pci_bus_id = Text(object, "pci_bus_id", where, false);
  device.ecc_enabled = Maybe<bool>(object, "ecc_enabled", where);
  device.ecc_uncorrected_volatile = Maybe<uint64_t>(object, "ecc_uncorrected_volatile", where);
  device.remap_pending = Maybe<bool>(object, "remap_pending", where);
  device.remap_failed = Maybe<bool>(object, "remap_failed", where);
  device.persistence = Maybe<bool>(object, "persistence", where);
  device.pcie_width = Maybe<int>(object, "pcie_width", where);
  device.pcie_width_max = Maybe<int>(object, "pcie_width_max", where);
  device.power_limits.enforced_watts = Maybe<double>(object, "power_limit_watts", where);
  device.power_limits.default_watts = Maybe<double>(object, "power_limit_default_watts", where);
  if (const auto slices = object.find("mig_slices"); slices != object.end() && !slices->is_null()) {
    if (!slices->is_array()) throw Fault(where + ": 'mig_slices' is not a list");
    device.mig_enabled = true;
    for (const json& slice : *slices) {
      device.slices.push_back(
          SliceOf(slice, fmt::format("{}, slice {}", where, device.slices.size())));
    }
  }
  return device;
}

FakeHeat HeatOf(const json& object, const std::string& where) {
  OnlyKeys(object, where, {"idle_celsius", "busy_celsius", "seconds", "clock_loss_ratio"});
  FakeHeat heat;
  heat.idle_celsius = Maybe<double>(object, "idle_celsius", where).value_or(30);
  heat.busy_celsius = Maybe<double>(object, "busy_celsius", where).value_or(70);
  heat.seconds = Maybe<double>(object, "seconds", where).value_or(20);
  heat.clock_loss_ratio = Maybe<double>(object, "clock_loss_ratio", where).value_or(0);
  return heat;
}

// What the inventory's description does not hold.
void AddState(const json& object, const std::string& where, NvmlState& state) {
  const auto clock = [&](const char* key) { return Maybe<double>(object, key, where, 1e6); };
  state.sm_clock_max_hertz = clock("sm_clock_max_mhz");
  state.sm_clock_application_hertz = clock("sm_clock_application_mhz");
  state.sm_clock_application_default_hertz = clock("sm_clock_application_default_mhz");
  state.memory_clock_application_hertz = clock("memory_clock_application_mhz");
  state.memory_clock_application_default_hertz = clock("memory_clock_application_default_mhz");
  state.ecc_corrected = Maybe<uint64_t>(object, "ecc_corrected_volatile", where);
  state.remapped_rows = Maybe<uint64_t>(object, "remapped_rows", where);
  state.pcie_generation_max = Maybe<int>(object, "pcie_generation_max", where);
}

// NVML's names of the errors that a whole node shows.
absl::Status InitErrorOf(const std::string& text) {
  if (text == "LIB_RM_VERSION_MISMATCH") {
    return absl::FailedPreconditionError("NVML: Driver/library version mismatch (" + text + ")");
  }
  if (text == "DRIVER_NOT_LOADED") return absl::UnavailableError("NVML: Driver Not Loaded");
  if (text == "TIMEOUT") return absl::DeadlineExceededError("NVML: Timeout");
  return absl::InternalError("NVML: " + text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FakeNvml>> FakeNvml::Parse(const std::string& text,
                                                          const std::string& file_name) {
  try {
    const json document = json::parse(text);
    OnlyKeys(document, "the file", {"driver_version", "init_error", "devices"});
    NvmlSystem system;
    std::map<std::string, NvmlSample> samples;
    std::map<std::string, std::vector<int64_t>> pids, xids;
    std::map<std::string, const json*> objects;
    std::map<std::string, FakeHeat> heats;
    system.driver_version = Text(document, "driver_version", "the file", false);
    const json& devices = document.at("devices");
    if (!devices.is_array()) throw Fault("'devices' is not a list");
    if (devices.size() > 1024) throw Fault("more than 1024 devices");
    for (const json& object : devices) {
      const std::string where = fmt::format("device {}", system.devices.size());
      NvmlDevice device = DeviceOf(object, static_cast<int>(system.devices.size()), where);
      if (const auto found = object.find("sample"); found != object.end() && !found->is_null()) {
        samples[device.uuid] = SampleOf(*found, where + ", sample");
      }
      if (const auto list = object.find("processes"); list != object.end() && !list->is_null()) {
        pids[device.uuid] = list->get<std::vector<int64_t>>();
      }
      if (const auto list = object.find("xids"); list != object.end() && !list->is_null()) {
        xids[device.uuid] = list->get<std::vector<int64_t>>();
      }
      if (const auto found = object.find("heat"); found != object.end() && !found->is_null()) {
        heats[device.uuid] = HeatOf(*found, where + ", heat");
      }
      objects[device.uuid] = &object;
      for (size_t i = 0; i < device.slices.size(); ++i) {
        const json& slice = object["mig_slices"][i];
        if (const auto found = slice.find("sample"); found != slice.end() && !found->is_null()) {
          samples[device.slices[i].uuid] = SampleOf(*found, where + ", sample of a slice");
        }
      }
      system.devices.push_back(std::move(device));
    }
    const std::string init_error = Text(document, "init_error", "the file", false);
    auto fake = std::make_unique<FakeNvml>(std::move(system));
    MutexLock lock(fake->mutex_);
    fake->samples_ = std::move(samples);
    fake->pids_ = std::move(pids);
    fake->xids_ = std::move(xids);
    fake->heats_ = std::move(heats);
    for (const auto& [uuid, object] : objects) {
      AddState(*object, "device " + uuid, fake->states_[uuid]);
      fake->links_[uuid].generation = Maybe<int>(*object, "pcie_generation", "device " + uuid);
    }
    if (!init_error.empty()) fake->failure_ = InitErrorOf(init_error);
    return fake;
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a captured NVML: {}", file_name, error.what()));
  }
}

absl::StatusOr<std::unique_ptr<FakeNvml>> FakeNvml::Load(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return ErrnoStatus(errno, "opening the captured NVML " + path);
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMostBytes) {
    return absl::InvalidArgumentError(path + " is over 16 MiB: not a captured NVML");
  }
  return Parse(text, path);
}

FakeNvml::FakeNvml(NvmlSystem system) : system_(std::move(system)) {
  MutexLock lock(mutex_);
  for (const NvmlDevice& device : system_.devices) {
    NvmlState& state = states_[device.uuid];
    state.power_limits = device.power_limits;
    state.persistence = device.persistence;
    state.ecc_enabled = device.ecc_enabled;
    state.ecc_uncorrected = device.ecc_uncorrected_volatile;
    state.remap_pending = device.remap_pending;
    state.pcie_width_max = device.pcie_width_max;
    links_[device.uuid].width = device.pcie_width;
  }
}

absl::StatusOr<NvmlSystem> FakeNvml::Describe() {
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  return system_;
}

absl::StatusOr<NvmlSample> FakeNvml::Sample(const std::string& uuid) {
  MutexLock lock(mutex_);
  ++samples_taken_;
  if (!failure_.ok()) return failure_;
  const auto found = samples_.find(uuid);
  if (found == samples_.end()) return absl::NotFoundError("no sample of " + uuid);
  const auto heat = heats_.find(uuid);
  return heat == heats_.end() ? found->second : Heated(heat->second, found->second);
}

NvmlSample FakeNvml::Heated(FakeHeat& heat, NvmlSample sample) {
  const BootTime now = clock_ != nullptr ? clock_->Now() : BootClock::now();
  const double passed = std::chrono::duration<double>(now - heat.at).count();
  if (heat.celsius) {
    const double towards = passed <= 1 ? heat.busy_celsius : heat.idle_celsius;
    *heat.celsius += (towards - *heat.celsius) * (1 - std::exp(-passed / heat.seconds));
  } else {
    heat.celsius = heat.idle_celsius;
  }
  heat.at = now;
  sample.temperature_celsius = std::round(*heat.celsius);  // as NVML gives it
  const double warmth =
      (*heat.celsius - heat.idle_celsius) / (heat.busy_celsius - heat.idle_celsius);
  if (sample.sm_clock_hertz) *sample.sm_clock_hertz *= 1 - heat.clock_loss_ratio * warmth;
  return sample;
}

bool FakeNvml::captured_heats(const std::string& uuid) const {
  MutexLock lock(mutex_);
  return heats_.contains(uuid);
}

void FakeNvml::SetClock(const Clock* clock) {
  MutexLock lock(mutex_);
  clock_ = clock;
}

// A slice has neither state nor link of its own.
absl::StatusOr<NvmlState> FakeNvml::State(const std::string& uuid) {
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  const auto found = states_.find(uuid);
  return found == states_.end() ? NvmlState{} : found->second;
}

absl::StatusOr<NvmlLink> FakeNvml::Link(const std::string& uuid) {
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  const auto found = links_.find(uuid);
  return found == links_.end() ? NvmlLink{} : found->second;
}

absl::StatusOr<std::vector<int64_t>> FakeNvml::Xids(const std::string& uuid) {
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  const auto found = xids_.find(uuid);
  if (found == xids_.end()) return absl::UnimplementedError("no Xids of " + uuid);
  return std::exchange(found->second, {});
}

absl::StatusOr<std::vector<int64_t>> FakeNvml::ProcessIds(const std::string& uuid) {
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  const auto found = pids_.find(uuid);
  if (found == pids_.end()) return absl::UnimplementedError("no process list of " + uuid);
  return found->second;
}

void FakeNvml::SetSample(const std::string& uuid, const NvmlSample& sample) {
  MutexLock lock(mutex_);
  samples_[uuid] = sample;
}

void FakeNvml::SetState(const std::string& uuid, const NvmlState& state) {
  MutexLock lock(mutex_);
  states_[uuid] = state;
}

void FakeNvml::SetLink(const std::string& uuid, const NvmlLink& link) {
  MutexLock lock(mutex_);
  links_[uuid] = link;
}

void FakeNvml::AddXid(const std::string& uuid, int64_t xid) {
  MutexLock lock(mutex_);
  xids_[uuid].push_back(xid);
}

void FakeNvml::SetProcessIds(const std::string& uuid, std::vector<int64_t> pids) {
  MutexLock lock(mutex_);
  pids_[uuid] = std::move(pids);
}

void FakeNvml::Fail(const absl::Status& status) {
  MutexLock lock(mutex_);
  failure_ = status;
}

int64_t FakeNvml::samples_taken() const {
  MutexLock lock(mutex_);
  return samples_taken_;
}

}  // namespace assay
