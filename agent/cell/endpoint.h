// Endpoint: where the ranks of a gang meet. The agent of rank 0 binds it, on a port that the kernel
// chooses, and hands the listening socket down, so the port cannot be taken in between (case 23).
#ifndef ASSAY_AGENT_CELL_ENDPOINT_H_
#define ASSAY_AGENT_CELL_ENDPOINT_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/process/event_loop.h"
#include "agent/process/unique_fd.h"

namespace assay {

struct BoundEndpoint {
  UniqueFd socket;      // listens
  std::string address;  // "10.0.0.7:41234", "[fe80::1]:41234"
};

// `host` is a numeric address of this machine.
absl::StatusOr<BoundEndpoint> BindEndpoint(const std::string& host);

// This machine's address on the way to `host`, by the kernel's routes; sends nothing. `host` may be
// a name. "127.0.0.1" where there is no way.
std::string LocalAddressTowards(const std::string& host, uint16_t port);

// Tries a connection without blocking the loop, and closes it. Destroying it gives up; `done` is
// called once, never from within the constructor.
class EndpointProbe {
 public:
  EndpointProbe(EventLoop& loop, const std::string& address, std::chrono::nanoseconds limit,
                std::function<void(absl::Status)> done);
  ~EndpointProbe();

 private:
  void Finish(absl::Status status);

  EventLoop& loop_;
  std::string address_;
  UniqueFd socket_;
  EventLoop::TimerId timer_{};
  std::function<void(absl::Status)> done_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_ENDPOINT_H_
