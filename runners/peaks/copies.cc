#include "runners/peaks/copies.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace assay::peaks {
namespace {

constexpr uint64_t kRepetitionBytes = 1'000'000'000;

}  // namespace

std::vector<uint64_t> CopySizes(uint64_t bytes, int buffers) {
  std::vector<uint64_t> sizes;
  for (const uint64_t size : {1'000'000'000, 500'000'000, 250'000'000, 125'000'000}) {
    if (size * static_cast<uint64_t>(buffers) <= bytes) sizes.push_back(size);
  }
  if (sizes.empty()) sizes.push_back(125'000'000);
  return sizes;
}

Copies::Copies(const Gpu& gpu, CopyKind kind, uint64_t seed, const PeerMemory& peer)
    : gpu_(gpu),
      kind_(kind),
      peer_(peer),
      values_(Number::kFloat32, seed),
      sizes_(CopySizes(
          kind == CopyKind::kPeer ? std::min(peer.bytes, gpu.FreeBytes() / 2) : gpu.FreeBytes() / 2,
          kind == CopyKind::kDevice ? 2 : 1)) {
  const size_t bytes = sizes_.front();
  if (kind == CopyKind::kDevice || kind == CopyKind::kDeviceToHost) {
    from_device_ = std::make_unique<DeviceBuffer>(gpu, bytes);
    from_device_->FillWith(values_.data(), values_.bytes());
  }
  if (kind != CopyKind::kDeviceToHost) to_device_ = std::make_unique<DeviceBuffer>(gpu, bytes);
  if (kind == CopyKind::kDevice || kind == CopyKind::kPeer) return;
  host_ = std::make_unique<PinnedBuffer>(gpu, bytes);
  std::memset(host_->data(), 0, bytes);
  for (size_t filled = 0; kind == CopyKind::kHostToDevice && filled < bytes;) {
    const size_t more = std::min(values_.bytes(), bytes - filled);
    std::memcpy(host_->data() + filled, values_.data(), more);
    filled += more;
  }
}

std::vector<Candidate> Copies::Candidates() const {
  std::vector<Candidate> candidates;
  for (const uint64_t size : sizes_) {
    candidates.push_back({.shape = std::to_string(size) + " B",
                          .units = kind_ == CopyKind::kDevice ? 2.0 : 1.0,
                          .queue = [this, size] { Queue(size); },
                          .fault = [this, size] { return Fault(size); }});
  }
  return candidates;
}

void Copies::Queue(uint64_t size) const {
  const CudaDriver& driver = gpu_.driver();
  for (uint64_t done = 0; done < kRepetitionBytes; done += size) {
    if (kind_ == CopyKind::kDevice || kind_ == CopyKind::kPeer) {
      const cuda_api::DevicePointer from =
          kind_ == CopyKind::kPeer ? peer_.pointer : from_device_->pointer();
      driver.Check(driver->MemcpyDtoDAsync(to_device_->pointer(), from, size, gpu_.stream()),
                   "cuMemcpyDtoD");
    } else if (kind_ == CopyKind::kHostToDevice) {
      driver.Check(
          driver->MemcpyHtoDAsync(to_device_->pointer(), host_->data(), size, gpu_.stream()),
          "cuMemcpyHtoD");
    } else {
      driver.Check(
          driver->MemcpyDtoHAsync(host_->data(), from_device_->pointer(), size, gpu_.stream()),
          "cuMemcpyDtoH");
    }
  }
}

void Copies::ReadTarget(void* to, uint64_t offset, size_t bytes) const {
  if (kind_ == CopyKind::kDeviceToHost) {
    gpu_.driver().Check(gpu_.driver()->CtxSynchronize(), "cuCtxSynchronize");
    std::memcpy(to, host_->data() + offset, bytes);
  } else {
    to_device_->Read(to, offset, bytes);
  }
}

std::string Copies::Fault(uint64_t size) const {
  constexpr size_t kValues = 1024;
  std::vector<float> got(kValues);
  const uint64_t all = size / sizeof(float);
  for (const uint64_t first : {uint64_t{0}, all / 3, all / 2, all - kValues}) {
    ReadTarget(got.data(), first * sizeof(float), kValues * sizeof(float));
    for (size_t i = 0; i < kValues; ++i) {
      const float value = values_.At(first + i);
      if (std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(got[i])) continue;
      return "byte " + std::to_string((first + i) * sizeof(float)) +
             " of the copy is not that of its source";
    }
  }
  return "";
}

}  // namespace assay::peaks
