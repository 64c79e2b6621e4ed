#include "runners/peaks/gpu.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace assay::peaks {
namespace {

std::string TextOf(const cuda_api::Uuid& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", uuid.bytes[i]);
    text += hex;
  }
  return text;
}

cuda_api::Device Find(const CudaDriver& driver, const std::string& uuid, int ordinal) {
  int count = 0;
  driver.Check(driver->DeviceGetCount(&count), "cuDeviceGetCount");
  const bool by_uuid = uuid.rfind("GPU-", 0) == 0;
  cuda_api::Device device = 0;
  for (int i = 0; by_uuid && i < count; ++i) {
    cuda_api::Uuid found{};
    driver.Check(driver->DeviceGet(&device, i), "cuDeviceGet");
    driver.Check(driver->DeviceGetUuid(&found, device), "cuDeviceGetUuid");
    if (TextOf(found) == uuid) return device;
  }
  if (by_uuid) {
    throw std::runtime_error("no CUDA device has the UUID " + uuid + " (" + std::to_string(count) +
                             " seen; look at CUDA_VISIBLE_DEVICES)");
  }
  if (ordinal < 0 || ordinal >= count) {
    throw std::runtime_error("CUDA device " + std::to_string(ordinal) + " was asked for, " +
                             std::to_string(count) + " seen");
  }
  driver.Check(driver->DeviceGet(&device, ordinal), "cuDeviceGet");
  return device;
}

}  // namespace

Gpu::Gpu(const CudaDriver& driver, const CudaBlas& blas, const std::string& uuid, int ordinal)
    : driver_(driver), blas_(blas), device_(Find(driver, uuid, ordinal)) {
  int major = 0, minor = 0;
  driver_.Check(driver_->DeviceGetAttribute(&major, cuda_api::kAttributeMajor, device_),
                "cuDeviceGetAttribute");
  driver_.Check(driver_->DeviceGetAttribute(&minor, cuda_api::kAttributeMinor, device_),
                "cuDeviceGetAttribute");
  compute_capability_ = major * 10 + minor;
  driver_.Check(driver_->PrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  driver_.Check(driver_->CtxSetCurrent(context_), "cuCtxSetCurrent");
  driver_.Check(driver_->StreamCreate(&stream_, cuda_api::kStreamNonBlocking), "cuStreamCreate");
  blas_.Check(blas_->Create(&handle_), "cublasCreate");
  blas_.Check(blas_->SetStream(handle_, stream_), "cublasSetStream");
  driver_.Check(driver_->EventCreate(&start_, cuda_api::kEventBlockingSync), "cuEventCreate");
  for (cuda_api::Event& end : ends_) {
    driver_.Check(driver_->EventCreate(&end, cuda_api::kEventBlockingSync), "cuEventCreate");
  }
  driver_.Check(driver_->MemAlloc(&counter_, 2 * sizeof(double)), "cuMemAlloc");
  const double initial[2] = {0, 1};
  driver_.Check(driver_->MemcpyHtoDAsync(counter_, initial, sizeof(initial), stream_),
                "cuMemcpyHtoD");
  Synchronize();
}

Gpu::~Gpu() {
  driver_->MemFree(counter_);
  for (cuda_api::Event end : ends_) driver_->EventDestroy(end);
  driver_->EventDestroy(start_);
  blas_->Destroy(handle_);
  driver_->StreamDestroy(stream_);
  driver_->PrimaryCtxRelease(device_);
}

std::string Gpu::BlasVersion() const {
  int v = 0;
  blas_.Check(blas_->GetVersion(handle_, &v), "cublasGetVersion");
  return std::to_string(v / 10000) + "." + std::to_string(v % 10000 / 100) + "." +
         std::to_string(v % 100);
}

uint64_t Gpu::FreeBytes() const {
  size_t free = 0, total = 0;
  driver_.Check(driver_->MemGetInfo(&free, &total), "cuMemGetInfo");
  return free;
}

void Gpu::BeginWindow() {
  driver_.Check(driver_->MemsetD8Async(counter_, 0, sizeof(double), stream_), "cuMemsetD8");
  Synchronize();
  ended_ = taken_ = 0;
  driver_.Check(driver_->EventRecord(start_, stream_), "cuEventRecord");
}

void Gpu::EndStep() {
  // count += 1 * one: cuBLAS's smallest kernel, so that none of our own must be compiled by nvcc.
  const double one = 1;
  auto* count = reinterpret_cast<double*>(counter_);
  blas_.Check(blas_->Daxpy(handle_, 1, &one, count + 1, 1, count, 1), "cublasDaxpy");
  driver_.Check(driver_->EventRecord(EndOf(ended_++), stream_), "cuEventRecord");
}

double Gpu::SecondsBetween(cuda_api::Event from, cuda_api::Event to) const {
  float milliseconds = 0;
  driver_.Check(driver_->EventElapsedTime(&milliseconds, from, to), "cuEventElapsedTime");
  return milliseconds * 1e-3;
}

double Gpu::TakeOldest() {
  const cuda_api::Event end = EndOf(taken_);
  driver_.Check(driver_->EventSynchronize(end), "cuEventSynchronize");
  const double seconds = SecondsBetween(taken_ == 0 ? start_ : EndOf(taken_ - 1), end);
  ++taken_;
  return seconds;
}

double Gpu::WindowSeconds() { return taken_ == 0 ? 0 : SecondsBetween(start_, EndOf(taken_ - 1)); }

void Gpu::Synchronize() { driver_.Check(driver_->CtxSynchronize(), "cuCtxSynchronize"); }

int64_t Gpu::CountedSteps() {
  double count = 0;
  driver_.Check(driver_->MemcpyDtoHAsync(&count, counter_, sizeof(count), stream_), "cuMemcpyDtoH");
  Synchronize();
  return static_cast<int64_t>(count);
}

DeviceBuffer::DeviceBuffer(const Gpu& gpu, size_t bytes) : gpu_(gpu), bytes_(bytes) {
  gpu_.driver().Check(gpu_.driver()->MemAlloc(&pointer_, bytes), "cuMemAlloc");
}

DeviceBuffer::~DeviceBuffer() { gpu_.driver()->MemFree(pointer_); }

void DeviceBuffer::FillWith(const void* block, size_t block_bytes) {
  const CudaDriver& driver = gpu_.driver();
  const size_t first = std::min(block_bytes, bytes_);
  driver.Check(driver->MemcpyHtoDAsync(pointer_, block, first, gpu_.stream()), "cuMemcpyHtoD");
  // What is there is a whole number of blocks until the last copy.
  for (size_t filled = first; filled < bytes_;) {
    const size_t more = std::min(filled, bytes_ - filled);
    driver.Check(driver->MemcpyDtoDAsync(pointer_ + filled, pointer_, more, gpu_.stream()),
                 "cuMemcpyDtoD");
    filled += more;
  }
  driver.Check(driver->CtxSynchronize(), "cuCtxSynchronize");
}

void DeviceBuffer::Read(void* to, size_t offset, size_t bytes) const {
  const CudaDriver& driver = gpu_.driver();
  driver.Check(driver->MemcpyDtoHAsync(to, pointer_ + offset, bytes, gpu_.stream()),
               "cuMemcpyDtoH");
  driver.Check(driver->CtxSynchronize(), "cuCtxSynchronize");
}

PinnedBuffer::PinnedBuffer(const Gpu& gpu, size_t bytes) : gpu_(gpu), bytes_(bytes) {
  gpu_.driver().Check(gpu_.driver()->MemHostAlloc(&pointer_, bytes, 0), "cuMemHostAlloc");
}

PinnedBuffer::~PinnedBuffer() { gpu_.driver()->MemFreeHost(pointer_); }

}  // namespace assay::peaks
