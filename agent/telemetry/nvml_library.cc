#include "agent/telemetry/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <utility>

#include "agent/telemetry/nvml_api.h"
#include "common/sync/mutex.h"

namespace assay {
namespace {

using namespace nvml_api;  // this file is its only user

// A list of more slices or processes than this is not believed.
constexpr unsigned int kMostSlices = 64;
constexpr unsigned int kMostProcesses = 4096;
// Kept of a device until they are asked for.
constexpr size_t kMostXids = 64;

template <size_t N>
std::string TextOf(const char (&buffer)[N]) {
  size_t length = 0;
  while (length < N && buffer[length] != '\0') ++length;
  return std::string(buffer, length);
}

// CUDA cores of one SM ("CUDA C++ Programming Guide", throughput of arithmetic instructions):
// NVML counts cores, the catalogue tells cards apart by SMs.
int CoresPerSm(int major, int minor) {
  if (major == 6) return minor == 0 ? 64 : 128;
  if (major == 7) return 64;
  if (major == 8) return minor == 0 ? 64 : 128;
  return major >= 5 ? 128 : 0;
}

}  // namespace

class NvmlLibrary::Calls {
 public:
  explicit Calls(std::string library) : library_(std::move(library)) {}
  ~Calls() {
    if (event_set_ != nullptr) functions_.event_set_free(event_set_);
    if (initialised_) functions_.shutdown();
    if (handle_ != nullptr) dlclose(handle_);
  }

  absl::StatusOr<NvmlSystem> Describe() {
    MutexLock lock(mutex_);
    if (absl::Status status = Start(); !status.ok()) return status;
    NvmlSystem system;
    char buffer[96] = {};
    if (functions_.driver_version && functions_.driver_version(buffer, sizeof buffer) == kSuccess) {
      system.driver_version = TextOf(buffer);
    }
    unsigned int count = 0;
    if (const Return code = functions_.device_count(&count); code != kSuccess) {
      return Error(code, "counting GPUs");
    }
    handles_.clear();
    for (unsigned int i = 0; i < count; ++i) system.devices.push_back(DescribeDevice(i));
    return system;
  }

  absl::StatusOr<NvmlSample> Sample(const std::string& uuid) {
    MutexLock lock(mutex_);
    const auto known = Find(uuid);
    if (!known.ok()) return known.status();
    const auto [device, is_slice] = *known;
    NvmlSample sample;
    unsigned long long wide = 0;
    unsigned int value = 0;
    sample.memory_used_bytes = UsedMemory(device);
    // What a slice answers for these is its parent's, or an error: not a figure of the slice.
    if (is_slice) return sample;
    if (Ask(functions_.power, device, &value)) sample.power_watts = value / 1e3;
    sample.sm_clock_hertz = Hertz(functions_.clock, device, kClockSm);
    sample.memory_clock_hertz = Hertz(functions_.clock, device, kClockMemory);
    if (Ask(functions_.temperature, device, kTemperatureGpu, &value)) {
      sample.temperature_celsius = value;
    }
    if (Ask(functions_.throttle, device, &wide)) sample.throttle_reasons = wide;
    if (Ask(functions_.energy, device, &wide))
      sample.energy_joules = static_cast<double>(wide) / 1e3;
    if (last_error_ == kGpuIsLost) {
      last_error_ = kSuccess;
      return Error(kGpuIsLost, "sampling " + uuid);
    }
    return sample;
  }

  absl::StatusOr<NvmlState> State(const std::string& uuid) {
    MutexLock lock(mutex_);
    const auto known = Find(uuid);
    if (!known.ok()) return known.status();
    NvmlState state;
    if (known->second) return state;
    const Device device = known->first;
    state.power_limits = ReadLimits(device);
    state.sm_clock_max_hertz = Hertz(functions_.clock_max, device, kClockSm);
    state.sm_clock_application_hertz = Hertz(functions_.clock_application, device, kClockSm);
    state.sm_clock_application_default_hertz =
        Hertz(functions_.clock_application_default, device, kClockSm);
    state.memory_clock_application_hertz =
        Hertz(functions_.clock_application, device, kClockMemory);
    state.memory_clock_application_default_hertz =
        Hertz(functions_.clock_application_default, device, kClockMemory);
    state.pcie_generation_max = Count(functions_.pcie_generation_max, device);
    state.pcie_width_max = Count(functions_.pcie_width_max, device);
    if (const auto mode = Count(functions_.persistence, device)) {
      state.persistence = *mode == static_cast<int>(kFeatureEnabled);
    }
    unsigned int now = 0, pending = 0;
    if (Ask(functions_.ecc_mode, device, &now, &pending)) state.ecc_enabled = now != 0;
    state.ecc_corrected = EccErrors(device, kErrorCorrected);
    state.ecc_uncorrected = EccErrors(device, kErrorUncorrected);
    unsigned int corrected = 0, uncorrected = 0, failed = 0;
    if (Ask(functions_.remapped_rows, device, &corrected, &uncorrected, &pending, &failed)) {
      state.remapped_rows = uint64_t{corrected} + uncorrected;
      state.remap_pending = pending != 0;
    }
    return state;
  }

  absl::StatusOr<NvmlLink> Link(const std::string& uuid) {
    MutexLock lock(mutex_);
    const auto known = Find(uuid);
    if (!known.ok()) return known.status();
    if (known->second) return NvmlLink{};
    return NvmlLink{Count(functions_.pcie_generation, known->first),
                    Count(functions_.pcie_width, known->first)};
  }

  absl::StatusOr<std::vector<int64_t>> Xids(const std::string& uuid) {
    MutexLock lock(mutex_);
    const auto known = Find(uuid);
    if (!known.ok()) return known.status();
    if (known->second) return absl::UnimplementedError("a slice tells no Xids of its own");
    if (absl::Status status = Listen(known->first); !status.ok()) return status;
    EventData event{};
    // Never waits: other calls stand behind this one.
    while (functions_.event_wait(event_set_, &event, 0) == kSuccess) {
      const auto heard = xids_.find(event.device);
      if (event.event_type != kEventXid || heard == xids_.end()) continue;
      if (heard->second.size() < kMostXids) {
        heard->second.push_back(static_cast<int64_t>(event.event_data));
      }
    }
    return std::exchange(xids_[known->first], {});
  }

  absl::StatusOr<std::vector<int64_t>> ProcessIds(const std::string& uuid) {
    MutexLock lock(mutex_);
    const auto known = Find(uuid);
    if (!known.ok()) return known.status();
    if (functions_.processes == nullptr) {
      return absl::UnimplementedError("this NVML lists no processes");
    }
    std::vector<ProcessInfo> list(64);
    for (;;) {
      unsigned int count = static_cast<unsigned int>(list.size());
      const Return code = functions_.processes(known->first, &count, list.data());
      if (code == kInsufficientSize && count < kMostProcesses && list.size() < kMostProcesses) {
        list.resize(list.size() * 2 + count);
        continue;
      }
      if (code != kSuccess) return Error(code, "listing processes of " + uuid);
      std::vector<int64_t> pids;
      for (unsigned int i = 0; i < count && i < list.size(); ++i) pids.push_back(list[i].pid);
      return pids;
    }
  }

 private:
  template <class Function, class... Arguments>
  bool Ask(Function function, Arguments... arguments) {
    if (function == nullptr) return false;
    const Return code = function(arguments...);
    if (code == kGpuIsLost) last_error_ = code;
    return code == kSuccess;
  }

  // Handle, and whether it is a slice.
  absl::StatusOr<std::pair<Device, bool>> Find(const std::string& uuid) ASSAY_REQUIRES(mutex_) {
    const auto known = handles_.find(uuid);
    if (known == handles_.end()) return absl::NotFoundError("NVML knows no device " + uuid);
    return known->second;
  }

  template <class Function>
  std::optional<int> Count(Function function, Device device) {
    unsigned int value = 0;
    return Ask(function, device, &value) ? std::optional(static_cast<int>(value)) : std::nullopt;
  }

  template <class Function>
  std::optional<double> Hertz(Function function, Device device, unsigned int clock) {
    unsigned int megahertz = 0;
    return Ask(function, device, clock, &megahertz) ? std::optional(megahertz * 1e6) : std::nullopt;
  }

  std::optional<uint64_t> EccErrors(Device device, unsigned int kind) {
    unsigned long long count = 0;
    return Ask(functions_.ecc_errors, device, kind, kEccVolatile, &count)
               ? std::optional<uint64_t>(count)
               : std::nullopt;
  }

  absl::Status Listen(Device device) ASSAY_REQUIRES(mutex_) {
    if (!functions_.event_set || !functions_.event_set_free || !functions_.register_events ||
        !functions_.event_wait) {
      return absl::UnimplementedError("this NVML tells no events");
    }
    if (event_set_ == nullptr) {
      if (const Return code = functions_.event_set(&event_set_); code != kSuccess) {
        event_set_ = nullptr;
        return Error(code, "making a set of events");
      }
    }
    if (xids_.contains(device)) return absl::OkStatus();
    const Return code = functions_.register_events(device, kEventXid, event_set_);
    if (code != kSuccess) return Error(code, "listening for Xids");
    xids_[device] = {};
    return absl::OkStatus();
  }

  absl::Status Start() ASSAY_REQUIRES(mutex_) {
    if (initialised_) return absl::OkStatus();
    if (handle_ == nullptr) {
      handle_ = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ == nullptr) {
        const char* why = dlerror();
        return absl::NotFoundError(
            fmt::format("no NVIDIA management library: {}", why ? why : library_));
      }
    }
    if (absl::Status status = Resolve(); !status.ok()) return status;
    if (const Return code = functions_.init(); code != kSuccess) {
      return Error(code, "starting NVML");
    }
    initialised_ = true;
    return absl::OkStatus();
  }

  absl::Status Resolve() {
#define ASSAY_NVML_LOAD(member, symbol, parameters) \
  functions_.member = reinterpret_cast<decltype(functions_.member)>(dlsym(handle_, symbol));
    ASSAY_NVML_REQUIRED(ASSAY_NVML_LOAD)
    ASSAY_NVML_OPTIONAL(ASSAY_NVML_LOAD)
#undef ASSAY_NVML_LOAD
    functions_.error_string =
        reinterpret_cast<const char* (*)(Return)>(dlsym(handle_, "nvmlErrorString"));
#define ASSAY_NVML_CHECK(member, symbol, parameters)                                   \
  if (functions_.member == nullptr) {                                                  \
    return absl::InternalError(                                                        \
        fmt::format("{} lacks {}: a driver from 450 on is needed", library_, symbol)); \
  }
    ASSAY_NVML_REQUIRED(ASSAY_NVML_CHECK)
#undef ASSAY_NVML_CHECK
    return absl::OkStatus();
  }

  absl::Status Error(Return code, const std::string& doing) const {
    const char* text = functions_.error_string ? functions_.error_string(code) : nullptr;
    std::string message =
        fmt::format("NVML: {}: {} (code {})", doing, text ? text : "unknown error", code);
    switch (code) {
      case kDriverNotLoaded:
      case kLibraryNotFound:
        return absl::UnavailableError(message);
      case kLibRmVersionMismatch:
        return absl::FailedPreconditionError(
            message +
            ": LIB_RM_VERSION_MISMATCH, the driver was updated under a running kernel "
            "module; restart the machine or reload the module");
      case kNotSupported:
      case kFunctionNotFound:
        return absl::UnimplementedError(message);
      case kNotFound:
        return absl::NotFoundError(message);
      case kTimeout:
        return absl::DeadlineExceededError(message);
      default:
        return absl::InternalError(message);
    }
  }

  NvmlDevice DescribeDevice(unsigned int index) ASSAY_REQUIRES(mutex_) {
    NvmlDevice out;
    out.index = static_cast<int>(index);
    Device device = nullptr;
    char buffer[96] = {};
    Return code = functions_.handle_by_index(index, &device);
    if (code == kSuccess) code = functions_.uuid(device, buffer, sizeof buffer);
    if (code != kSuccess) {
      out.faults.push_back(
          std::string(Error(code, fmt::format("opening GPU {}", index)).message()));
      return out;
    }
    out.uuid = TextOf(buffer);
    handles_[out.uuid] = {device, false};
    char name[96] = {};
    if (functions_.name(device, name, sizeof name) == kSuccess) out.name = TextOf(name);
    out.memory_total_bytes = TotalMemory(device);
    ReadCapability(device, out);
    ReadHealth(device, out);
    out.power_limits = ReadLimits(device);
    ReadSlices(device, out);
    return out;
  }

  uint64_t TotalMemory(Device device) {
    MemoryV2 v2{};
    v2.version = kMemoryV2;
    if (Ask(functions_.memory_v2, device, &v2)) return v2.total;
    Memory v1{};
    return Ask(functions_.memory, device, &v1) ? v1.total : 0;
  }

  std::optional<uint64_t> UsedMemory(Device device) {
    MemoryV2 v2{};
    v2.version = kMemoryV2;
    if (Ask(functions_.memory_v2, device, &v2)) return v2.used;
    Memory v1{};
    if (Ask(functions_.memory, device, &v1)) return v1.used;
    return std::nullopt;
  }

  void ReadCapability(Device device, NvmlDevice& out) {
    int major = 0, minor = 0;
    if (Ask(functions_.capability, device, &major, &minor)) {
      out.cc_major = major;
      out.cc_minor = minor;
      unsigned int cores = 0;
      const int per_sm = CoresPerSm(major, minor);
      if (per_sm > 0 && Ask(functions_.gpu_cores, device, &cores) && cores > 0) {
        out.sm_count = static_cast<int>(cores) / per_sm;
      }
    }
    PciInfo pci{};
    if (Ask(functions_.pci_info, device, &pci)) out.pci_bus_id = TextOf(pci.bus_id);
    out.pcie_width = Count(functions_.pcie_width, device);
    out.pcie_width_max = Count(functions_.pcie_width_max, device);
  }

  void ReadHealth(Device device, NvmlDevice& out) {
    unsigned int now = 0, pending = 0;
    if (Ask(functions_.ecc_mode, device, &now, &pending)) out.ecc_enabled = now != 0;
    if (const auto mode = Count(functions_.persistence, device)) {
      out.persistence = *mode == static_cast<int>(kFeatureEnabled);
    }
    out.ecc_uncorrected_volatile = EccErrors(device, kErrorUncorrected);
    unsigned int corrected = 0, uncorrected = 0, waiting = 0, failed = 0;
    if (Ask(functions_.remapped_rows, device, &corrected, &uncorrected, &waiting, &failed)) {
      out.remap_pending = waiting != 0;
      out.remap_failed = failed != 0;
    } else if (Ask(functions_.retired_pending, device, &waiting)) {
      out.remap_pending = waiting != 0;  // before Ampere pages are retired, not rows remapped
    }
  }

  NvmlPowerLimits ReadLimits(Device device) {
    NvmlPowerLimits limits;
    unsigned int milliwatts = 0;
    if (Ask(functions_.power_limit, device, &milliwatts)) limits.enforced_watts = milliwatts / 1e3;
    if (Ask(functions_.power_limit_default, device, &milliwatts)) {
      limits.default_watts = milliwatts / 1e3;
    }
    return limits;
  }

  void ReadSlices(Device device, NvmlDevice& out) ASSAY_REQUIRES(mutex_) {
    unsigned int current = 0, pending = 0, most = 0;
    if (!Ask(functions_.mig_mode, device, &current, &pending) || current != kMigEnabled) return;
    out.mig_enabled = true;
    if (!Ask(functions_.mig_count, device, &most)) return;
    for (unsigned int i = 0; i < most && i < kMostSlices; ++i) {
      Device slice = nullptr;
      char buffer[96] = {};
      if (!Ask(functions_.mig_handle, device, i, &slice)) continue;  // an index may be unused
      if (!Ask(functions_.uuid, slice, buffer, static_cast<unsigned int>(sizeof buffer))) continue;
      NvmlMigSlice found;
      found.uuid = TextOf(buffer);
      char name[96] = {};
      if (Ask(functions_.name, slice, name, static_cast<unsigned int>(sizeof name))) {
        found.name = TextOf(name);
      }
      found.memory_total_bytes = TotalMemory(slice);
      if (const size_t at = found.name.find("MIG "); at != std::string::npos) {
        found.profile = found.name.substr(at + 4);
      }
      DeviceAttributes attributes{};
      if (Ask(functions_.attributes, slice, &attributes)) {
        found.sm_count = static_cast<int>(attributes.multiprocessor_count);
        if (found.profile.empty()) {
          found.profile = fmt::format("{}g.{}gb", attributes.gpu_instance_slice_count,
                                      (attributes.memory_size_mb + 1023) / 1024);
        }
      }
      handles_[found.uuid] = {slice, true};
      out.slices.push_back(std::move(found));
    }
  }

  Mutex mutex_;
  const std::string library_;
  void* handle_ = nullptr;
  Functions functions_;
  bool initialised_ ASSAY_GUARDED_BY(mutex_) = false;
  Return last_error_ = kSuccess;
  EventSet event_set_ = nullptr;
  // Of the devices that are listened to, what was heard and not asked for yet.
  std::map<Device, std::vector<int64_t>> xids_ ASSAY_GUARDED_BY(mutex_);
  std::map<std::string, std::pair<Device, bool>> handles_ ASSAY_GUARDED_BY(mutex_);  // is a slice
};

NvmlLibrary::NvmlLibrary(std::string library)
    : calls_(std::make_unique<Calls>(std::move(library))) {}
NvmlLibrary::~NvmlLibrary() = default;

absl::StatusOr<NvmlSystem> NvmlLibrary::Describe() { return calls_->Describe(); }
absl::StatusOr<NvmlSample> NvmlLibrary::Sample(const std::string& uuid) {
  return calls_->Sample(uuid);
}
absl::StatusOr<NvmlState> NvmlLibrary::State(const std::string& uuid) {
  return calls_->State(uuid);
}
absl::StatusOr<NvmlLink> NvmlLibrary::Link(const std::string& uuid) { return calls_->Link(uuid); }
absl::StatusOr<std::vector<int64_t>> NvmlLibrary::Xids(const std::string& uuid) {
  return calls_->Xids(uuid);
}
absl::StatusOr<std::vector<int64_t>> NvmlLibrary::ProcessIds(const std::string& uuid) {
  return calls_->ProcessIds(uuid);
}

}  // namespace assay
