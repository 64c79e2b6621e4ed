// cuda_api.h beside the real headers, in the target cuda_compile_check. cuBLAS's may be missing.
#include <cuda.h>
#include <library_types.h>

#include <type_traits>

#include "runners/peaks/cuda_api.h"
#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#endif

namespace assay::peaks::cuda_api {

static_assert(kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY && kNoDevice == CUDA_ERROR_NO_DEVICE &&
              kEccUncorrectable == CUDA_ERROR_ECC_UNCORRECTABLE && kSuccess == CUDA_SUCCESS);
static_assert(kAttributeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              kAttributeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(kEventBlockingSync == CU_EVENT_BLOCKING_SYNC &&
              kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(std::is_same_v<DevicePointer, CUdeviceptr> && std::is_same_v<Device, CUdevice>);
static_assert(sizeof(Uuid) == sizeof(CUuuid) && sizeof(Result) == sizeof(CUresult));
static_assert(kReal32 == CUDA_R_32F && kReal16 == CUDA_R_16F && kBrainReal16 == CUDA_R_16BF);

// As many parameters, each of the size and kind of the real one.
template <typename Ours, typename Theirs>
struct SameShape : std::false_type {};
template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
struct SameShape<OurResult (*)(Ours...), TheirResult (*)(Theirs...)> {
  // Pointers, too, are compared by their size. NOLINTBEGIN(bugprone-sizeof-expression)
  static constexpr bool value =
      sizeof...(Ours) == sizeof...(Theirs) && sizeof(OurResult) == sizeof(TheirResult) &&
      ((sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>) &&
       ...);
  // NOLINTEND(bugprone-sizeof-expression)
};
template <auto Ours, typename Theirs>
constexpr bool kSame = SameShape<std::remove_reference_t<decltype(Driver().*Ours)>, Theirs>::value;

static_assert(kSame<&Driver::Init, decltype(&cuInit)>);
static_assert(kSame<&Driver::GetErrorString, decltype(&cuGetErrorString)>);
static_assert(kSame<&Driver::DriverGetVersion, decltype(&cuDriverGetVersion)>);
static_assert(kSame<&Driver::DeviceGetCount, decltype(&cuDeviceGetCount)>);
static_assert(kSame<&Driver::DeviceGet, decltype(&cuDeviceGet)>);
static_assert(kSame<&Driver::DeviceGetUuid, decltype(&cuDeviceGetUuid)>);
static_assert(kSame<&Driver::DeviceGetAttribute, decltype(&cuDeviceGetAttribute)>);
static_assert(kSame<&Driver::PrimaryCtxRetain, decltype(&cuDevicePrimaryCtxRetain)>);
static_assert(kSame<&Driver::PrimaryCtxRelease, decltype(&cuDevicePrimaryCtxRelease)>);
static_assert(kSame<&Driver::CtxSetCurrent, decltype(&cuCtxSetCurrent)>);
static_assert(kSame<&Driver::MemGetInfo, decltype(&cuMemGetInfo)>);
static_assert(kSame<&Driver::MemAlloc, decltype(&cuMemAlloc)>);
static_assert(kSame<&Driver::MemFree, decltype(&cuMemFree)>);
static_assert(kSame<&Driver::MemHostAlloc, decltype(&cuMemHostAlloc)>);
static_assert(kSame<&Driver::MemFreeHost, decltype(&cuMemFreeHost)>);
static_assert(kSame<&Driver::MemcpyHtoDAsync, decltype(&cuMemcpyHtoDAsync)>);
static_assert(kSame<&Driver::MemcpyDtoHAsync, decltype(&cuMemcpyDtoHAsync)>);
static_assert(kSame<&Driver::MemcpyDtoDAsync, decltype(&cuMemcpyDtoDAsync)>);
static_assert(kSame<&Driver::MemsetD8Async, decltype(&cuMemsetD8Async)>);
static_assert(kSame<&Driver::IpcGetMemHandle, decltype(&cuIpcGetMemHandle)>);
static_assert(kSame<&Driver::IpcOpenMemHandle, decltype(&cuIpcOpenMemHandle)>);
static_assert(kSame<&Driver::IpcCloseMemHandle, decltype(&cuIpcCloseMemHandle)>);
static_assert(kIpcLazyPeerAccess == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
static_assert(kSame<&Driver::StreamCreate, decltype(&cuStreamCreate)>);
static_assert(kSame<&Driver::StreamDestroy, decltype(&cuStreamDestroy)>);
static_assert(kSame<&Driver::EventCreate, decltype(&cuEventCreate)>);
static_assert(kSame<&Driver::EventDestroy, decltype(&cuEventDestroy)>);
static_assert(kSame<&Driver::EventRecord, decltype(&cuEventRecord)>);
static_assert(kSame<&Driver::EventSynchronize, decltype(&cuEventSynchronize)>);
static_assert(kSame<&Driver::EventElapsedTime, decltype(&cuEventElapsedTime)>);

#ifdef CUBLAS_VER_MAJOR
static_assert(kBlasSuccess == CUBLAS_STATUS_SUCCESS &&
              kBlasAllocFailed == CUBLAS_STATUS_ALLOC_FAILED);
static_assert(kOpN == CUBLAS_OP_N && kOpT == CUBLAS_OP_T && kGemmDefault == CUBLAS_GEMM_DEFAULT);
static_assert(kCompute16 == CUBLAS_COMPUTE_16F && kCompute32 == CUBLAS_COMPUTE_32F &&
              kCompute32FastTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
#endif

}  // namespace assay::peaks::cuda_api
