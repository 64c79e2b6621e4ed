// A CUDA driver and a cuBLAS in ordinary memory, enough for assay-peaks to measure copies without a
// GPU. Built as libcuda.so.1 and as libcublas.so.13. Products are not computed at all, as by a
// library that skips the work. FAKE_CUDA tells of other faults: `lossy` leaves out the last bytes
// of each copy, `miscount` counts every step twice, `full` has no memory.
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <tuple>

#include "runners/peaks/cuda_api.h"

// The device's clock, which its work moves on and nothing else: 10 GB/s, and a millisecond a
// product. So tests are fast, and know what must be measured. One for both libraries, by the
// linker's rules for inline.
inline double now_seconds = 0;

namespace {

using namespace assay::peaks::cuda_api;  // it is this API

bool Is(const char* fault) {
  const char* given = std::getenv("FAKE_CUDA");
  return given != nullptr && std::string(given) == fault;
}

// A copy that was done is not done again, for its bytes are there.
Result Copy(void* to, const void* from, size_t bytes) {
  static std::set<std::tuple<void*, const void*, size_t>> done;
  now_seconds += static_cast<double>(bytes) / 1e10;
  if (bytes >= (size_t{64} << 20) && !done.insert({to, from, bytes}).second) return kSuccess;
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
// Lends a copy, which is all that a reader needs.
Result cuIpcGetMemHandle(IpcMemory* handle, DevicePointer pointer) {
  const size_t bytes = malloc_usable_size(Memory(pointer));
  auto* path = reinterpret_cast<char*>(handle->bytes);
  std::snprintf(path, sizeof(handle->bytes), "/tmp/assay-fake-cuda-%d-%zu", getpid(), bytes);
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (shared == MAP_FAILED) return kOutOfMemory;
  std::memcpy(shared, Memory(pointer), bytes);
  return kSuccess;
}
Result cuIpcOpenMemHandle_v2(DevicePointer* pointer, IpcMemory handle, unsigned) {
  const auto* path = reinterpret_cast<const char*>(handle.bytes);
  if (Is("no_peer")) return kNoDevice;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat info{};
  if (fd < 0 || fstat(fd, &info) != 0) return kNoDevice;
  unlink(path);
  void* shared = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  *pointer = reinterpret_cast<DevicePointer>(shared);
  return shared == MAP_FAILED ? kOutOfMemory : kSuccess;
}
Result cuIpcCloseMemHandle(DevicePointer) { return kSuccess; }
Result cuStreamCreate(Stream* stream, unsigned) {
  *stream = nullptr;
  return kSuccess;
}
Result cuStreamDestroy_v2(Stream) { return kSuccess; }
Result cuEventCreate(Event* event, unsigned) {
  *event = reinterpret_cast<Event>(new double(0));
  return kSuccess;
}
Result cuEventDestroy_v2(Event event) {
  delete reinterpret_cast<double*>(event);
  return kSuccess;
}
Result cuEventRecord(Event event, Stream) {
  *reinterpret_cast<double*>(event) = now_seconds;
  return kSuccess;
}
Result cuEventSynchronize(Event) { return kSuccess; }
Result cuEventElapsedTime(float* milliseconds, Event start, Event end) {
  *milliseconds = static_cast<float>(
      (*reinterpret_cast<double*>(end) - *reinterpret_cast<double*>(start)) * 1e3);
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
  now_seconds += 1e-3;
  return kBlasSuccess;
}
BlasStatus cublasDaxpy_v2(BlasHandle, int, const double* alpha, const double* x, int, double* y,
                          int) {
  *y += (Is("miscount") ? 2 : 1) * *alpha * *x;
  return kBlasSuccess;
}
}
