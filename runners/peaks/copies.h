// Copies: memory moved from one place to another, in several sizes.
//
// A GB is 10^9 bytes. A copy on the device counts what is read and what is written, so that its
// rate is that of the memory; a copy between host and device, or between two devices, counts what
// crosses the link, once. One repetition moves 10^9 bytes, so that whole GB are counted. Owner: the
// runner; its candidates must not outlive it. Thread rule: one thread. Errors: CudaError.
#ifndef ASSAY_RUNNERS_PEAKS_COPIES_H_
#define ASSAY_RUNNERS_PEAKS_COPIES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runners/peaks/candidate.h"
#include "runners/peaks/gpu.h"
#include "runners/peaks/normals.h"

namespace assay::peaks {

enum class CopyKind { kDevice, kHostToDevice, kDeviceToHost, kPeer };

// Memory that another process has on another GPU, mapped into this one, filled with the block of
// the same seed. Of CopyKind::kPeer, which reads it.
struct PeerMemory {
  cuda_api::DevicePointer pointer = 0;
  uint64_t bytes = 0;
};

// Divisors of 10^9, large ones first, of which `buffers` fit into `bytes`; the smallest in any
// case. All are far larger than a cache.
std::vector<uint64_t> CopySizes(uint64_t bytes, int buffers);

class Copies {
 public:
  Copies(const Gpu& gpu, CopyKind kind, uint64_t seed, const PeerMemory& peer = {});
  std::vector<Candidate> Candidates() const;

 private:
  void Queue(uint64_t size) const;
  // Compares some stretches of what was copied with what it was copied from; empty: they are equal.
  std::string Fault(uint64_t size) const;
  void ReadTarget(void* to, uint64_t offset, size_t bytes) const;

  const Gpu& gpu_;
  const CopyKind kind_;
  const PeerMemory peer_;
  const NormalBlock values_;
  const std::vector<uint64_t> sizes_;
  std::unique_ptr<DeviceBuffer> from_device_, to_device_;
  std::unique_ptr<PinnedBuffer> host_;
};

}  // namespace assay::peaks

#endif  // ASSAY_RUNNERS_PEAKS_COPIES_H_
