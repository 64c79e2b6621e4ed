// A CUDA driver and a cuBLAS in ordinary memory, enough for assay-peaks to measure copies without a
// GPU. Built as libcuda.so.1 and as libcublas.so.13. Products are not computed at all, as by a
// library that skips the work. FAKE_CUDA tells of other faults: `lossy` leaves out the last bytes
// of each copy, `miscount` counts every step twice, `full` has no memory.
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "runners/peaks/cuda_api.h"

namespace {

using namespace assay::peaks::cuda_api;  // NOLINT(google-build-using-namespace): it is this API

bool Is(const char* fault) {
  const char* given = std::getenv("FAKE_CUDA");
  return given != nullptr && std::string(given) == fault;
}

Result Copy(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, Is("lossy") && bytes > 4096 ? bytes - 64 : bytes);
  return kSuccess;
}

void* Memory(DevicePointer pointer) { return reinterpret_cast<void*>(pointer); }

}  // namespace

extern "C" {

Result cuInit(unsigned) { return Is("no_device") ? kNoDevice : kSuccess; }
Result cuGetErrorString(Result error, const char** text) {
  *text = error == kOutOfMemory ? "out of memory" : "no CUDA-capable device is detected";
  return kSuccess;
}
Result cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
Result cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}
Result cuDeviceGet(Device* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
Result cuDeviceGetUuid_v2(Uuid* uuid, Device) {
  for (size_t i = 0; i < sizeof(uuid->bytes); ++i) uuid->bytes[i] = static_cast<unsigned char>(i);
  return kSuccess;
}
Result cuDeviceGetAttribute(int* value, int attribute, Device) {
  *value = attribute == kAttributeMajor ? 7 : 5;
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain(Context* context, Device) {
  *context = nullptr;
  return kSuccess;
}
Result cuDevicePrimaryCtxRelease_v2(Device) { return kSuccess; }
Result cuCtxSetCurrent(Context) { return kSuccess; }
Result cuCtxSynchronize() { return kSuccess; }
Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = size_t{600} << 20;
  return kSuccess;
}
Result cuMemAlloc_v2(DevicePointer* pointer, size_t bytes) {
  if (Is("full") && bytes > 4096) return kOutOfMemory;
  void* memory = std::calloc(1, bytes);
  *pointer = reinterpret_cast<DevicePointer>(memory);
  return memory == nullptr ? kOutOfMemory : kSuccess;
}
Result cuMemFree_v2(DevicePointer pointer) {
  std::free(Memory(pointer));
  return kSuccess;
}
Result cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  *pointer = std::calloc(1, bytes);
  return *pointer == nullptr ? kOutOfMemory : kSuccess;
}
Result cuMemFreeHost(void* pointer) {
  std::free(pointer);
  return kSuccess;
}
Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, Stream) {
  return Copy(Memory(to), from, bytes);
}
Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, Stream) {
  return Copy(to, Memory(from), bytes);
}
Result cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, Stream) {
  return Copy(Memory(to), Memory(from), bytes);
}
Result cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes, Stream) {
  std::memset(Memory(to), value, bytes);
  return kSuccess;
}
Result cuStreamCreate(Stream* stream, unsigned) {
  *stream = nullptr;
  return kSuccess;
}
Result cuStreamDestroy_v2(Stream) { return kSuccess; }
Result cuEventCreate(Event* event, unsigned) {
  *event = static_cast<Event>(std::calloc(1, sizeof(timespec)));
  return kSuccess;
}
Result cuEventDestroy_v2(Event event) {
  std::free(event);
  return kSuccess;
}
Result cuEventRecord(Event event, Stream) {
  clock_gettime(CLOCK_MONOTONIC, reinterpret_cast<timespec*>(event));
  return kSuccess;
}
Result cuEventSynchronize(Event) { return kSuccess; }
Result cuEventElapsedTime(float* milliseconds, Event start, Event end) {
  const auto* a = reinterpret_cast<const timespec*>(start);
  const auto* b = reinterpret_cast<const timespec*>(end);
  *milliseconds = static_cast<float>(static_cast<double>(b->tv_sec - a->tv_sec) * 1e3 +
                                     static_cast<double>(b->tv_nsec - a->tv_nsec) * 1e-6);
  return kSuccess;
}

BlasStatus cublasCreate_v2(BlasHandle* handle) {
  *handle = nullptr;
  return kBlasSuccess;
}
BlasStatus cublasDestroy_v2(BlasHandle) { return kBlasSuccess; }
BlasStatus cublasSetStream_v2(BlasHandle, Stream) { return kBlasSuccess; }
BlasStatus cublasGetVersion_v2(BlasHandle, int* version) {
  *version = 130100;
  return kBlasSuccess;
}
size_t cublasGetCudartVersion() { return 13000; }
BlasStatus cublasGemmEx(BlasHandle, int, int, int, int, int, const void*, const void*, int, int,
                        const void*, int, int, const void*, void*, int, int, int, int) {
  const timespec millisecond = {0, 1'000'000};
  nanosleep(&millisecond, nullptr);
  return kBlasSuccess;
}
BlasStatus cublasDaxpy_v2(BlasHandle, int, const double* alpha, const double* x, int, double* y,
                          int) {
  *y += (Is("miscount") ? 2 : 1) * *alpha * *x;
  return kBlasSuccess;
}
}
