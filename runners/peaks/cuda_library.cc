#include "runners/peaks/cuda_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#ifndef ASSAY_CUBLAS_PATHS
#define ASSAY_CUBLAS_PATHS ""
#endif

namespace assay::peaks {
namespace {

namespace fs = std::filesystem;

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The folders below nvidia/ that NVIDIA's wheels bring: nvidia/cu13/lib, or nvidia/cublas/lib.
std::vector<std::string> WheelFolders(const std::string& libtorch) {
  std::vector<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator it(fs::path(libtorch) / ".." / "nvidia", error), end;
       !error && it != end; it.increment(error)) {
    folders.push_back((it->path() / "lib").string());
  }
  std::sort(folders.rbegin(), folders.rend());
  folders.push_back((fs::path(libtorch) / "lib").string());
  return folders;
}

std::vector<std::string> SplitPaths(const std::string& paths) {
  std::vector<std::string> folders;
  std::istringstream stream(paths);
  for (std::string folder; std::getline(stream, folder, ':');) folders.push_back(folder);
  return folders;
}

template <typename Function>
bool Resolve(void* library, Function& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function != nullptr) return true;
  }
  return false;
}

bool ResolveDriver(void* library, cuda_api::Driver& f) {
  return Resolve(library, f.Init, {"cuInit"}) &&
         Resolve(library, f.GetErrorString, {"cuGetErrorString"}) &&
         Resolve(library, f.DriverGetVersion, {"cuDriverGetVersion"}) &&
         Resolve(library, f.DeviceGetCount, {"cuDeviceGetCount"}) &&
         Resolve(library, f.DeviceGet, {"cuDeviceGet"}) &&
         // The second one knows MIG slices.
         Resolve(library, f.DeviceGetUuid, {"cuDeviceGetUuid_v2", "cuDeviceGetUuid"}) &&
         Resolve(library, f.DeviceGetAttribute, {"cuDeviceGetAttribute"}) &&
         Resolve(library, f.PrimaryCtxRetain, {"cuDevicePrimaryCtxRetain"}) &&
         Resolve(library, f.PrimaryCtxRelease,
                 {"cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease"}) &&
         Resolve(library, f.CtxSetCurrent, {"cuCtxSetCurrent"}) &&
         Resolve(library, f.CtxSynchronize, {"cuCtxSynchronize"}) &&
         Resolve(library, f.MemGetInfo, {"cuMemGetInfo_v2"}) &&
         Resolve(library, f.MemAlloc, {"cuMemAlloc_v2"}) &&
         Resolve(library, f.MemFree, {"cuMemFree_v2"}) &&
         Resolve(library, f.MemHostAlloc, {"cuMemHostAlloc"}) &&
         Resolve(library, f.MemFreeHost, {"cuMemFreeHost"}) &&
         Resolve(library, f.MemcpyHtoDAsync, {"cuMemcpyHtoDAsync_v2"}) &&
         Resolve(library, f.MemcpyDtoHAsync, {"cuMemcpyDtoHAsync_v2"}) &&
         Resolve(library, f.MemcpyDtoDAsync, {"cuMemcpyDtoDAsync_v2"}) &&
         Resolve(library, f.MemsetD8Async, {"cuMemsetD8Async"}) &&
         Resolve(library, f.IpcGetMemHandle, {"cuIpcGetMemHandle"}) &&
         Resolve(library, f.IpcOpenMemHandle, {"cuIpcOpenMemHandle_v2"}) &&
         Resolve(library, f.IpcCloseMemHandle, {"cuIpcCloseMemHandle"}) &&
         Resolve(library, f.StreamCreate, {"cuStreamCreate"}) &&
         Resolve(library, f.StreamDestroy, {"cuStreamDestroy_v2"}) &&
         Resolve(library, f.EventCreate, {"cuEventCreate"}) &&
         Resolve(library, f.EventDestroy, {"cuEventDestroy_v2"}) &&
         Resolve(library, f.EventRecord, {"cuEventRecord"}) &&
         Resolve(library, f.EventSynchronize, {"cuEventSynchronize"}) &&
         Resolve(library, f.EventElapsedTime, {"cuEventElapsedTime"});
}

bool ResolveBlas(void* library, cuda_api::Blas& f) {
  return Resolve(library, f.Create, {"cublasCreate_v2"}) &&
         Resolve(library, f.Destroy, {"cublasDestroy_v2"}) &&
         Resolve(library, f.SetStream, {"cublasSetStream_v2"}) &&
         Resolve(library, f.GetVersion, {"cublasGetVersion_v2"}) &&
         Resolve(library, f.GetCudartVersion, {"cublasGetCudartVersion"}) &&
         Resolve(library, f.GemmEx, {"cublasGemmEx"}) &&
         Resolve(library, f.Daxpy, {"cublasDaxpy_v2"});
}

// libcublasLt.so lies beside it, and not every package tells the loader so: loaded first, the
// loader finds it by its name.
void* LoadWithLt(const std::string& path) {
  const std::string part = "libcublas.so";
  std::string lt = path;
  lt.replace(lt.rfind(part), part.size(), "libcublasLt.so");
  dlopen(lt.c_str(), RTLD_NOW | RTLD_GLOBAL);
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

std::vector<std::string> BlasCandidates(const std::string& given, const std::string& libtorch,
                                        const std::vector<std::string>& built_in) {
  std::vector<std::string> folders;
  if (!given.empty()) {
    folders.push_back(given);
  } else {
    if (!libtorch.empty()) folders = WheelFolders(libtorch);
    folders.insert(folders.end(), built_in.begin(), built_in.end());
    folders.emplace_back();
  }
  std::vector<std::string> candidates;
  for (const std::string& folder : folders) {
    for (const char* major : {"13", "12", "11"}) {
      const std::string name = std::string("libcublas.so.") + major;
      if (folder.empty()) {
        candidates.push_back(name);
      } else if (access((folder + "/" + name).c_str(), R_OK) == 0) {
        candidates.push_back(folder + "/" + name);
      }
    }
  }
  return candidates;
}

CudaDriver::CudaDriver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    throw NoDriver(std::string("there is no NVIDIA driver here (") + dlerror() + ")");
  }
  if (!ResolveDriver(library, functions_)) {
    throw NoDriver("libcuda.so.1 lacks functions of CUDA 11: update the NVIDIA driver");
  }
  const cuda_api::Result result = functions_.Init(0);
  if (result != cuda_api::kSuccess) {
    const char* text = nullptr;
    functions_.GetErrorString(result, &text);
    throw NoDriver(std::string("the NVIDIA driver does not start: ") +
                   (text == nullptr ? "error " + std::to_string(result) : text));
  }
}

void CudaDriver::Check(cuda_api::Result result, const char* call) const {
  if (result == cuda_api::kSuccess) return;
  const char* text = nullptr;
  functions_.GetErrorString(result, &text);
  throw CudaError(
      std::string(call) + ": " + (text == nullptr ? "CUDA error " + std::to_string(result) : text),
      result == cuda_api::kOutOfMemory, result == cuda_api::kEccUncorrectable);
}

CudaBlas::CudaBlas() {
  const std::string given = FromEnvironment("ASSAY_CUBLAS");
  std::string said;
  for (const std::string& path :
       BlasCandidates(given, FromEnvironment("ASSAY_LIBTORCH"), SplitPaths(ASSAY_CUBLAS_PATHS))) {
    void* library = LoadWithLt(path);
    if (library == nullptr) {
      if (said.empty()) said = dlerror();
    } else if (ResolveBlas(library, functions_)) {
      return;
    } else if (said.empty()) {
      said = path + " lacks functions of cuBLAS 11";
    }
  }
  throw NoBlas(
      "cuBLAS was not found" + (given.empty() ? "" : " in ASSAY_CUBLAS=" + given) +
      ": set ASSAY_CUBLAS to the folder of libcublas.so.13, .12 or .11 (in the CUDA toolkit, or "
      "nvidia/*/lib beside PyTorch)" +
      (said.empty() ? "" : "; " + said));
}

void CudaBlas::Check(cuda_api::BlasStatus status, const char* call) const {
  if (status == cuda_api::kBlasSuccess) return;
  const bool memory = status == cuda_api::kBlasAllocFailed;
  throw CudaError(std::string(call) + ": cuBLAS status " + std::to_string(status) +
                      (memory ? " (out of memory)" : ""),
                  memory, false);
}

std::string CudaBlas::CudaVersion() const {
  const size_t version = functions_.GetCudartVersion();
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace assay::peaks
