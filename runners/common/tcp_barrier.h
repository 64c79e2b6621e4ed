// TcpBarrier: the start and the end barrier of a gang that has no NCCL, at the cell file's
// endpoint, and lines of text between rank 0 and the others.
//
// Rank 0 takes descriptor 5 where that is a listening socket (the agent binds it before the others
// are told), else it binds the endpoint. Connections that say nothing, as an agent's test connect,
// are ignored, and closed where they are many. A rank that is gone is not noticed at the end
// barrier: the others wait, as they do in a collective; ending them is the agent's duty. Thread
// rule: one thread.
#ifndef ASSAY_RUNNERS_COMMON_TCP_BARRIER_H_
#define ASSAY_RUNNERS_COMMON_TCP_BARRIER_H_

#include <memory>
#include <optional>
#include <string>

#include "common/runner_protocol/cell_file.h"

namespace assay {

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

  // Sends a line without its line break: rank 0 to all others, another to rank 0. One that is gone
  // is passed over.
  void SendLine(const std::string& line);
  // The next line from `rank`: of rank 0 from one of the others, of another from 0. Waits; nullopt
  // where that rank is gone. A line over 1 MiB counts as gone.
  std::optional<std::string> ReceiveLine(int rank);

  // Returns when every rank has called it. Waits for ever for one that does not.
  void Finish();

 private:
  struct Sockets;
  explicit TcpBarrier(std::unique_ptr<Sockets> sockets);
  std::unique_ptr<Sockets> sockets_;
};

}  // namespace assay

#endif  // ASSAY_RUNNERS_COMMON_TCP_BARRIER_H_
