// A shared library with NVML's symbols, for NvmlLibrary's test: one A100 with MIG off, or what
// ASSAY_STUB_NVML says: mismatch, not_loaded, mig, sparse (memory and name alone).
#include <cstdlib>
#include <cstring>

#include "agent/telemetry/nvml_api.h"

namespace api = assay::nvml_api;

namespace {

bool Mode(const char* mode) {
  const char* set = std::getenv("ASSAY_STUB_NVML");
  return set != nullptr && std::strcmp(set, mode) == 0;
}
api::Device Handle(long number) { return reinterpret_cast<api::Device>(number); }
bool IsSlice(api::Device device) { return device == Handle(2); }
api::Return Supported() { return Mode("sparse") ? api::kNotSupported : api::kSuccess; }
api::Return Put(unsigned int* out, unsigned int value) {
  if (Supported() == api::kSuccess) *out = value;
  return Supported();
}

}  // namespace

extern "C" {

api::Return nvmlInit_v2() {
  if (Mode("mismatch")) return api::kLibRmVersionMismatch;
  return Mode("not_loaded") ? api::kDriverNotLoaded : api::kSuccess;
}
api::Return nvmlShutdown() { return api::kSuccess; }
const char* nvmlErrorString(api::Return code) {
  return code == api::kLibRmVersionMismatch ? "Driver/library version mismatch" : "Some error";
}
api::Return nvmlSystemGetDriverVersion(char* out, unsigned int size) {
  std::strncpy(out, "525.60.13", size);
  return api::kSuccess;
}
api::Return nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 1;
  return api::kSuccess;
}
api::Return nvmlDeviceGetHandleByIndex_v2(unsigned int, api::Device* out) {
  *out = Handle(1);
  return api::kSuccess;
}
api::Return nvmlDeviceGetUUID(api::Device device, char* out, unsigned int size) {
  std::strncpy(out, IsSlice(device) ? "MIG-1" : "GPU-1", size);
  return api::kSuccess;
}
// Fills the buffer to its last byte, without an end, as a driver should not.
api::Return nvmlDeviceGetName(api::Device device, char* out, unsigned int size) {
  if (Mode("sparse")) {
    std::memset(out, 'n', size);
  } else {
    std::strncpy(out, IsSlice(device) ? "NVIDIA A100 MIG 1g.5gb" : "NVIDIA A100\xff", size);
  }
  return api::kSuccess;
}
api::Return nvmlDeviceGetMemoryInfo(api::Device, api::Memory* out) {
  *out = {42949672960, 42000000000, 949672960};
  return api::kSuccess;
}
api::Return nvmlDeviceGetMemoryInfo_v2(api::Device device, api::MemoryV2* out) {
  if (out->version != api::kMemoryV2) return api::kArgumentVersionMismatch;
  if (Mode("sparse")) return api::kNotSupported;
  out->total = IsSlice(device) ? 5000000000 : 42949672960;
  out->used = 4194304;
  return api::kSuccess;
}
api::Return nvmlDeviceGetCudaComputeCapability(api::Device, int* major, int* minor) {
  *major = 8;
  *minor = 0;
  return Supported();
}
api::Return nvmlDeviceGetNumGpuCores(api::Device, unsigned int* out) { return Put(out, 6912); }
api::Return nvmlDeviceGetEccMode(api::Device, unsigned int* now, unsigned int* next) {
  *now = *next = 1;
  return Supported();
}
api::Return nvmlDeviceGetPersistenceMode(api::Device, unsigned int* out) { return Put(out, 1); }
api::Return nvmlDeviceGetPowerUsage(api::Device, unsigned int* out) { return Put(out, 123456); }
api::Return nvmlDeviceGetEnforcedPowerLimit(api::Device, unsigned int* out) {
  return Put(out, 250000);
}
api::Return nvmlDeviceGetClockInfo(api::Device, unsigned int clock, unsigned int* out) {
  return Put(out, clock == api::kClockSm ? 1410 : 1215);
}
api::Return nvmlDeviceGetMaxClockInfo(api::Device, unsigned int clock, unsigned int* out) {
  return Put(out, clock == api::kClockSm ? 1410 : 1215);
}
api::Return nvmlDeviceGetApplicationsClock(api::Device, unsigned int clock, unsigned int* out) {
  return Put(out, clock == api::kClockSm ? 1095 : 1215);
}
api::Return nvmlDeviceGetDefaultApplicationsClock(api::Device, unsigned int clock,
                                                  unsigned int* out) {
  return Put(out, clock == api::kClockSm ? 1275 : 1215);
}
api::Return nvmlDeviceGetCurrPcieLinkGeneration(api::Device, unsigned int* out) {
  return Put(out, 3);
}
api::Return nvmlDeviceGetMaxPcieLinkGeneration(api::Device, unsigned int* out) {
  return Put(out, 4);
}
api::Return nvmlDeviceGetCurrPcieLinkWidth(api::Device, unsigned int* out) { return Put(out, 8); }
api::Return nvmlDeviceGetTotalEccErrors(api::Device, unsigned int kind, unsigned int,
                                        unsigned long long* out) {
  *out = kind == api::kErrorCorrected ? 3 : 0;
  return Supported();
}
api::Return nvmlDeviceGetRemappedRows(api::Device, unsigned int* corrected,
                                      unsigned int* uncorrected, unsigned int* pending,
                                      unsigned int* failed) {
  *corrected = 5;
  *uncorrected = 2;
  *pending = *failed = 0;
  return Supported();
}
api::Return nvmlEventSetCreate(api::EventSet* out) {
  *out = reinterpret_cast<api::EventSet>(9L);
  return api::kSuccess;
}
api::Return nvmlEventSetFree(api::EventSet) { return api::kSuccess; }
api::Return nvmlDeviceRegisterEvents(api::Device, unsigned long long types, api::EventSet) {
  return types == api::kEventXid ? Supported() : api::kInvalidArgument;
}
// The number in ASSAY_STUB_XID, once.
api::Return nvmlEventSetWait_v2(api::EventSet, api::EventData* out, unsigned int milliseconds) {
  const char* xid = std::getenv("ASSAY_STUB_XID");
  if (xid == nullptr || milliseconds != 0) return api::kTimeout;
  *out = {Handle(1), api::kEventXid, std::strtoull(xid, nullptr, 10), 0, 0};
  unsetenv("ASSAY_STUB_XID");
  return api::kSuccess;
}
api::Return nvmlDeviceGetComputeRunningProcesses_v3(api::Device, unsigned int* count,
                                                    api::ProcessInfo* list) {
  constexpr unsigned int kMany = 200;  // over the first guess of a caller
  const unsigned int room = *count;
  *count = kMany;
  if (room < kMany) return api::kInsufficientSize;
  for (unsigned int i = 0; i < kMany; ++i) list[i].pid = 1000 + i;
  return api::kSuccess;
}
api::Return nvmlDeviceGetMigMode(api::Device, unsigned int* now, unsigned int* next) {
  *now = *next = Mode("mig") ? 1 : 0;
  return Supported();
}
api::Return nvmlDeviceGetMaxMigDeviceCount(api::Device, unsigned int* out) { return Put(out, 7); }
api::Return nvmlDeviceGetMigDeviceHandleByIndex(api::Device, unsigned int index, api::Device* out) {
  if (index != 3) return api::kNotFound;
  *out = Handle(2);
  return api::kSuccess;
}
api::Return nvmlDeviceGetAttributes_v2(api::Device, api::DeviceAttributes* out) {
  out->multiprocessor_count = 14;
  return api::kSuccess;
}

}  // extern "C"
