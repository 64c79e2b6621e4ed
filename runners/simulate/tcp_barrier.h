// TcpBarrier: the start and the end barrier of a simulated gang, at the cell file's endpoint.
//
// Rank 0 takes descriptor 5 where that is a listening socket (the agent binds it before the others
// are told), else it binds the endpoint. Connections that say nothing, as an agent's test connect,
// are ignored. A rank that is gone is not noticed at the end barrier: the others wait, as they do
// in a collective; ending them is the agent's duty. Thread rule: one thread.
#ifndef ASSAY_RUNNERS_SIMULATE_TCP_BARRIER_H_
#define ASSAY_RUNNERS_SIMULATE_TCP_BARRIER_H_

#include <memory>
#include <string>

#include "common/runner_protocol/cell_file.h"

namespace assay::simulate {

// Descriptor under which an agent passes the listening socket to rank 0.
inline constexpr int kPassedListener = 5;

class TcpBarrier {
 public:
  // Returns when all ranks have come. Throws std::runtime_error after `seconds` with the ranks that
  // are missing (rank 0) or that rank 0 cannot be reached, and for a bad endpoint.
  static std::unique_ptr<TcpBarrier> Join(const CellFile& cell, double seconds);
  ~TcpBarrier();
  TcpBarrier(const TcpBarrier&) = delete;
  TcpBarrier& operator=(const TcpBarrier&) = delete;

  // Returns when every rank has called it. Waits for ever for one that does not.
  void Finish();

 private:
  struct Sockets;
  explicit TcpBarrier(std::unique_ptr<Sockets> sockets);
  std::unique_ptr<Sockets> sockets_;
};

}  // namespace assay::simulate

#endif  // ASSAY_RUNNERS_SIMULATE_TCP_BARRIER_H_
