// The part of CUDA's driver interface and of cuBLAS that assay-peaks calls, declared here so that
// it builds where neither has a header: cuBLAS's come only in packages of several hundred MB.
//
// Values and layouts are those of NVIDIA's "CUDA Driver API"
// (https://docs.nvidia.com/cuda/cuda-driver-api/) and "cuBLAS"
// (https://docs.nvidia.com/cuda/cublas/). Versioned symbols are stable, so that a newer library
// serves them unchanged. header_check.cc compares them with the headers where there are any. Only
// cuda_library.cc and what it gives tables to includes this.
#ifndef ASSAY_RUNNERS_PEAKS_CUDA_API_H_
#define ASSAY_RUNNERS_PEAKS_CUDA_API_H_

#include <cstddef>
#include <cstdint>

namespace assay::peaks::cuda_api {

// ---- driver (libcuda.so.1)
using Result = int;                        // CUresult
using Device = int;                        // CUdevice
using DevicePointer = unsigned long long;  // CUdeviceptr
struct ContextOpaque;
using Context = ContextOpaque*;  // CUcontext
struct StreamOpaque;
using Stream = StreamOpaque*;  // CUstream
struct EventOpaque;
using Event = EventOpaque*;  // CUevent
struct Uuid {                // CUuuid
  unsigned char bytes[16];
};

inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kEccUncorrectable = 214;
inline constexpr int kAttributeMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
inline constexpr int kAttributeMinor = 76;
inline constexpr unsigned kEventBlockingSync = 1;
inline constexpr unsigned kStreamNonBlocking = 1;

inline constexpr unsigned kIpcLazyPeerAccess = 1;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
struct IpcMemory {                                 // CUipcMemHandle
  unsigned char bytes[64];
};

struct Driver {
  Result (*Init)(unsigned flags);
  Result (*GetErrorString)(Result error, const char** text);
  Result (*DriverGetVersion)(int* version);
  Result (*DeviceGetCount)(int* count);
  Result (*DeviceGet)(Device* device, int ordinal);
  Result (*DeviceGetUuid)(Uuid* uuid, Device device);
  Result (*DeviceGetAttribute)(int* value, int attribute, Device device);
  Result (*PrimaryCtxRetain)(Context* context, Device device);
  Result (*PrimaryCtxRelease)(Device device);
  Result (*CtxSetCurrent)(Context context);
  Result (*CtxSynchronize)();
  Result (*MemGetInfo)(size_t* free, size_t* total);
  Result (*MemAlloc)(DevicePointer* pointer, size_t bytes);
  Result (*MemFree)(DevicePointer pointer);
  Result (*MemHostAlloc)(void** pointer, size_t bytes, unsigned flags);
  Result (*MemFreeHost)(void* pointer);
  Result (*MemcpyHtoDAsync)(DevicePointer to, const void* from, size_t bytes, Stream stream);
  Result (*MemcpyDtoHAsync)(void* to, DevicePointer from, size_t bytes, Stream stream);
  Result (*MemcpyDtoDAsync)(DevicePointer to, DevicePointer from, size_t bytes, Stream stream);
  Result (*MemsetD8Async)(DevicePointer to, unsigned char value, size_t bytes, Stream stream);
  Result (*IpcGetMemHandle)(IpcMemory* handle, DevicePointer pointer);
  Result (*IpcOpenMemHandle)(DevicePointer* pointer, IpcMemory handle, unsigned flags);
  Result (*IpcCloseMemHandle)(DevicePointer pointer);
  Result (*StreamCreate)(Stream* stream, unsigned flags);
  Result (*StreamDestroy)(Stream stream);
  Result (*EventCreate)(Event* event, unsigned flags);
  Result (*EventDestroy)(Event event);
  Result (*EventRecord)(Event event, Stream stream);
  Result (*EventSynchronize)(Event event);
  Result (*EventElapsedTime)(float* milliseconds, Event start, Event end);
};

// ---- cuBLAS (libcublas.so.11 and later)
using BlasStatus = int;  // cublasStatus_t
struct BlasHandleOpaque;
using BlasHandle = BlasHandleOpaque*;  // cublasHandle_t
inline constexpr BlasStatus kBlasSuccess = 0;
inline constexpr BlasStatus kBlasAllocFailed = 3;
inline constexpr int kOpN = 0, kOpT = 1;                           // cublasOperation_t
inline constexpr int kReal32 = 0, kReal16 = 2, kBrainReal16 = 14;  // cudaDataType_t
inline constexpr int kCompute16 = 64, kCompute32 = 68;             // cublasComputeType_t
inline constexpr int kCompute32FastTf32 = 77;
inline constexpr int kGemmDefault = -1;  // cublasGemmAlgo_t

struct Blas {
  BlasStatus (*Create)(BlasHandle* handle);
  BlasStatus (*Destroy)(BlasHandle handle);
  BlasStatus (*SetStream)(BlasHandle handle, Stream stream);
  BlasStatus (*GetVersion)(BlasHandle handle, int* version);
  size_t (*GetCudartVersion)();
  BlasStatus (*GemmEx)(BlasHandle handle, int op_a, int op_b, int m, int n, int k,
                       const void* alpha, const void* a, int type_a, int lda, const void* b,
                       int type_b, int ldb, const void* beta, void* c, int type_c, int ldc,
                       int compute, int algorithm);
  BlasStatus (*Daxpy)(BlasHandle handle, int n, const double* alpha, const double* x, int incx,
                      double* y, int incy);
};

}  // namespace assay::peaks::cuda_api

#endif  // ASSAY_RUNNERS_PEAKS_CUDA_API_H_
