// The part of NVML's C interface that Assay calls, declared here because Debian has no nvml.h.
//
// Values and layouts are those of NVIDIA's "NVML API Reference Guide"
// (https://docs.nvidia.com/deploy/nvml-api/): nvmlReturn_t, nvmlMemory_t, nvmlMemory_v2_t,
// nvmlPciInfo_t, nvmlProcessInfo_t, nvmlDeviceAttributes_t, nvmlEventData_t and the functions named
// below. NVML keeps versioned symbols stable, so a newer library serves them unchanged. Only
// nvml_library.cc (and the library that its test loads) includes this.
#ifndef ASSAY_AGENT_TELEMETRY_NVML_API_H_
#define ASSAY_AGENT_TELEMETRY_NVML_API_H_

#include <cstdint>

namespace assay::nvml_api {

using Return = int;  // nvmlReturn_t
inline constexpr Return kSuccess = 0;
inline constexpr Return kUninitialized = 1;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kLibraryNotFound = 12;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kLibRmVersionMismatch = 18;
inline constexpr Return kArgumentVersionMismatch = 25;

struct DeviceOpaque;
using Device = DeviceOpaque*;  // nvmlDevice_t

struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};

// nvmlMemory_v2_t: `reserved` (the driver's own) is not in `used`, as it is in version 1.
struct MemoryV2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
inline constexpr unsigned int kMemoryV2 = sizeof(MemoryV2) | (2u << 24);

struct PciInfo {  // nvmlPciInfo_t, version 3
  char bus_id_legacy[16];
  unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

struct ProcessInfo {  // nvmlProcessInfo_t, as nvmlDeviceGetComputeRunningProcesses_v3 fills it
  unsigned int pid;
  unsigned long long used_gpu_memory;
  unsigned int gpu_instance_id, compute_instance_id;
};

struct DeviceAttributes {  // nvmlDeviceAttributes_t: of a MIG device
  unsigned int multiprocessor_count, shared_copy_engine_count, shared_decoder_count;
  unsigned int shared_encoder_count, shared_jpeg_count, shared_ofa_count;
  unsigned int gpu_instance_slice_count, compute_instance_slice_count;
  unsigned long long memory_size_mb;
};

struct EventSetOpaque;
using EventSet = EventSetOpaque*;  // nvmlEventSet_t

struct EventData {  // nvmlEventData_t, as nvmlEventSetWait_v2 fills it
  Device device;
  unsigned long long event_type, event_data;  // of an Xid event its number
  unsigned int gpu_instance_id, compute_instance_id;
};

inline constexpr unsigned int kClockSm = 1;           // NVML_CLOCK_SM
inline constexpr unsigned int kClockMemory = 2;       // NVML_CLOCK_MEM
inline constexpr unsigned int kTemperatureGpu = 0;    // NVML_TEMPERATURE_GPU
inline constexpr unsigned int kErrorCorrected = 0;    // NVML_MEMORY_ERROR_TYPE_CORRECTED
inline constexpr unsigned int kErrorUncorrected = 1;  // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
inline constexpr unsigned int kEccVolatile = 0;       // NVML_VOLATILE_ECC
inline constexpr unsigned int kMigEnabled = 1;        // NVML_DEVICE_MIG_ENABLE
inline constexpr unsigned int kFeatureEnabled = 1;    // NVML_FEATURE_ENABLED
inline constexpr unsigned long long kEventXid = 8;    // nvmlEventTypeXidCriticalError

// Every function: result and parameters. X(member, symbol, parameters); required ones first.
#define ASSAY_NVML_REQUIRED(X)                                                 \
  X(init, "nvmlInit_v2", ())                                                   \
  X(shutdown, "nvmlShutdown", ())                                              \
  X(device_count, "nvmlDeviceGetCount_v2", (unsigned int*))                    \
  X(handle_by_index, "nvmlDeviceGetHandleByIndex_v2", (unsigned int, Device*)) \
  X(uuid, "nvmlDeviceGetUUID", (Device, char*, unsigned int))                  \
  X(name, "nvmlDeviceGetName", (Device, char*, unsigned int))                  \
  X(memory, "nvmlDeviceGetMemoryInfo", (Device, Memory*))

// May be missing in an older library: then the figure is not known.
#define ASSAY_NVML_OPTIONAL(X)                                                                   \
  X(driver_version, "nvmlSystemGetDriverVersion", (char*, unsigned int))                         \
  X(memory_v2, "nvmlDeviceGetMemoryInfo_v2", (Device, MemoryV2*))                                \
  X(capability, "nvmlDeviceGetCudaComputeCapability", (Device, int*, int*))                      \
  X(gpu_cores, "nvmlDeviceGetNumGpuCores", (Device, unsigned int*))                              \
  X(pci_info, "nvmlDeviceGetPciInfo_v3", (Device, PciInfo*))                                     \
  X(ecc_mode, "nvmlDeviceGetEccMode", (Device, unsigned int*, unsigned int*))                    \
  X(ecc_errors, "nvmlDeviceGetTotalEccErrors",                                                   \
    (Device, unsigned int, unsigned int, unsigned long long*))                                   \
  X(remapped_rows, "nvmlDeviceGetRemappedRows",                                                  \
    (Device, unsigned int*, unsigned int*, unsigned int*, unsigned int*))                        \
  X(retired_pending, "nvmlDeviceGetRetiredPagesPendingStatus", (Device, unsigned int*))          \
  X(persistence, "nvmlDeviceGetPersistenceMode", (Device, unsigned int*))                        \
  X(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth", (Device, unsigned int*))                       \
  X(pcie_width_max, "nvmlDeviceGetMaxPcieLinkWidth", (Device, unsigned int*))                    \
  X(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration", (Device, unsigned int*))             \
  X(pcie_generation_max, "nvmlDeviceGetMaxPcieLinkGeneration", (Device, unsigned int*))          \
  X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", (Device, unsigned int*))                     \
  X(power_limit_default, "nvmlDeviceGetPowerManagementDefaultLimit", (Device, unsigned int*))    \
  X(power, "nvmlDeviceGetPowerUsage", (Device, unsigned int*))                                   \
  X(energy, "nvmlDeviceGetTotalEnergyConsumption", (Device, unsigned long long*))                \
  X(clock, "nvmlDeviceGetClockInfo", (Device, unsigned int, unsigned int*))                      \
  X(clock_max, "nvmlDeviceGetMaxClockInfo", (Device, unsigned int, unsigned int*))               \
  X(clock_application, "nvmlDeviceGetApplicationsClock", (Device, unsigned int, unsigned int*))  \
  X(clock_application_default, "nvmlDeviceGetDefaultApplicationsClock",                          \
    (Device, unsigned int, unsigned int*))                                                       \
  X(temperature, "nvmlDeviceGetTemperature", (Device, unsigned int, unsigned int*))              \
  X(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons", (Device, unsigned long long*))        \
  X(processes, "nvmlDeviceGetComputeRunningProcesses_v3", (Device, unsigned int*, ProcessInfo*)) \
  X(event_set, "nvmlEventSetCreate", (EventSet*))                                                \
  X(event_set_free, "nvmlEventSetFree", (EventSet))                                              \
  X(register_events, "nvmlDeviceRegisterEvents", (Device, unsigned long long, EventSet))         \
  X(event_wait, "nvmlEventSetWait_v2", (EventSet, EventData*, unsigned int))                     \
  X(mig_mode, "nvmlDeviceGetMigMode", (Device, unsigned int*, unsigned int*))                    \
  X(mig_count, "nvmlDeviceGetMaxMigDeviceCount", (Device, unsigned int*))                        \
  X(mig_handle, "nvmlDeviceGetMigDeviceHandleByIndex", (Device, unsigned int, Device*))          \
  X(attributes, "nvmlDeviceGetAttributes_v2", (Device, DeviceAttributes*))

struct Functions {
// NOLINTNEXTLINE(bugprone-macro-parentheses): it declares a pointer to a function
#define ASSAY_NVML_MEMBER(member, symbol, parameters) Return(*member) parameters = nullptr;
  ASSAY_NVML_REQUIRED(ASSAY_NVML_MEMBER)
  ASSAY_NVML_OPTIONAL(ASSAY_NVML_MEMBER)
#undef ASSAY_NVML_MEMBER
  const char* (*error_string)(Return) = nullptr;  // nvmlErrorString
};

}  // namespace assay::nvml_api

#endif  // ASSAY_AGENT_TELEMETRY_NVML_API_H_
