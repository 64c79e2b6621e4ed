// Peer: what two GPUs of a node copy between them, each the device of a rank of its own.
//
// Rank 1 has memory and lends it (CUDA's inter-process memory, which also works where each process
// sees its own GPU only, CUDA 10.1 and later); rank 0 reads it and measures; both report rank 0's
// figures. Thread rule: one thread. Errors: std::runtime_error where the other rank is gone,
// CudaError.
#ifndef ASSAY_RUNNERS_PEAKS_PEER_H_
#define ASSAY_RUNNERS_PEAKS_PEER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runners/common/record_writer.h"
#include "runners/common/tcp_barrier.h"
#include "runners/peaks/candidate.h"
#include "runners/peaks/copies.h"
#include "runners/peaks/gpu.h"

namespace assay::peaks {

// Of rank 1: lends memory until rank 0 sends its result, which is returned.
RunnerResult LendToPeer(const Gpu& gpu, TcpBarrier& ranks, uint64_t seed, RecordWriter& records);

// These two GPUs have no way to each other; what() says what the driver said.
struct NoPeerAccess : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Of rank 0.
class PeerCopies {
 public:
  // Waits for what rank 1 lends. Throws NoPeerAccess.
  PeerCopies(const Gpu& gpu, TcpBarrier& ranks, uint64_t seed);
  ~PeerCopies();
  PeerCopies(const PeerCopies&) = delete;
  PeerCopies& operator=(const PeerCopies&) = delete;

  // Tell rank 1 each second, that it may show a sign of life.
  std::vector<Candidate> Candidates() const;
  // Ends rank 1 with this result.
  void Tell(const RunnerResult& result) const;

 private:
  const Gpu& gpu_;
  TcpBarrier& ranks_;
  PeerMemory memory_;
  std::unique_ptr<Copies> copies_;
};

}  // namespace assay::peaks

#endif  // ASSAY_RUNNERS_PEAKS_PEER_H_
