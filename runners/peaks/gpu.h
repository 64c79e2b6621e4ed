// Gpu: one CUDA device with its stream, cuBLAS, memory and time line.
//
// Owner: the runner, for one cell; buffers must not outlive it. Thread rule: one thread, since the
// context is the current one of the thread that made it. Errors: CudaError.
#ifndef ASSAY_RUNNERS_PEAKS_GPU_H_
#define ASSAY_RUNNERS_PEAKS_GPU_H_

#include <array>
#include <cstdint>
#include <string>

#include "runners/peaks/cuda_library.h"
#include "runners/peaks/timeline.h"

namespace assay::peaks {

class Gpu final : public Timeline {
 public:
  // By UUID ("GPU-...") where one is given, else by ordinal: CUDA's order is not NVML's, so that
  // the ordinal alone may name another card. Throws std::runtime_error where there is no such
  // device.
  Gpu(const CudaDriver& driver, const CudaBlas& blas, const std::string& uuid, int ordinal);
  ~Gpu() override;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const CudaDriver& driver() const { return driver_; }
  const CudaBlas& blas() const { return blas_; }
  cuda_api::BlasHandle handle() const { return handle_; }
  cuda_api::Stream stream() const { return stream_; }
  int compute_capability() const { return compute_capability_; }  // major * 10 + minor
  std::string BlasVersion() const;                                // "13.1.0"
  uint64_t FreeBytes() const;

  void BeginWindow() override;
  void EndStep() override;
  int64_t PendingSteps() const override { return ended_ - taken_; }
  double TakeOldest() override;
  double WindowSeconds() override;
  void Synchronize() override;
  int64_t CountedSteps() override;

 private:
  cuda_api::Event EndOf(int64_t step) const { return ends_[step % ends_.size()]; }
  double SecondsBetween(cuda_api::Event from, cuda_api::Event to) const;

  const CudaDriver& driver_;
  const CudaBlas& blas_;
  cuda_api::Device device_ = 0;
  cuda_api::Context context_ = nullptr;
  cuda_api::Stream stream_ = nullptr;
  cuda_api::BlasHandle handle_ = nullptr;
  int compute_capability_ = 0;
  cuda_api::DevicePointer counter_ = 0;  // two doubles on the device: the count, and a one
  cuda_api::Event start_ = nullptr;
  // One slot more than may be pending, since a step is measured from the end of the one before.
  std::array<cuda_api::Event, kMostPending + 1> ends_{};
  int64_t ended_ = 0;
  int64_t taken_ = 0;
};

// Memory of the device, freed with this.
class DeviceBuffer {
 public:
  DeviceBuffer(const Gpu& gpu, size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  cuda_api::DevicePointer pointer() const { return pointer_; }
  size_t bytes() const { return bytes_; }
  // Fills all of it with `block` again and again; waits.
  void FillWith(const void* block, size_t block_bytes);
  // Waits for all that was queued before.
  void Read(void* to, size_t offset, size_t bytes) const;

 private:
  const Gpu& gpu_;
  size_t bytes_;
  cuda_api::DevicePointer pointer_ = 0;
};

// Page-locked memory of the host, freed with this.
class PinnedBuffer {
 public:
  PinnedBuffer(const Gpu& gpu, size_t bytes);
  ~PinnedBuffer();
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  char* data() const { return static_cast<char*>(pointer_); }
  size_t bytes() const { return bytes_; }

 private:
  const Gpu& gpu_;
  size_t bytes_;
  void* pointer_ = nullptr;
};

}  // namespace assay::peaks

#endif  // ASSAY_RUNNERS_PEAKS_GPU_H_
