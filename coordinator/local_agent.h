// LocalAgent: the agent that a coordinator in local mode runs as its child.
//
// Starts the program, starts it again when it ends (with growing waits), and stops it for good on
// Stop: SIGTERM, a grace in which the agent ends its runners, then SIGKILL. The child gets SIGTERM
// from the kernel when this process dies in any way.
//
// Thread rule: one owner; Start and Stop from the same thread. One thread of its own lives from
// Start to Stop, since the kernel's signal at the parent's death is sent at the death of the
// spawning *thread*.
#ifndef ASSAY_COORDINATOR_LOCAL_AGENT_H_
#define ASSAY_COORDINATOR_LOCAL_AGENT_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace assay {

struct LocalAgentOptions {
  std::string program;                 // absolute path
  std::vector<std::string> arguments;  // without the program's name
  std::chrono::milliseconds backoff_first{200};
  std::chrono::milliseconds backoff_cap{5'000};
  // An agent that lived this long is well; its next wait is the first one again.
  std::chrono::milliseconds healthy_after{10'000};
  // The agent's own grace for a runner (TERM to KILL) and some to report it.
  std::chrono::milliseconds stop_grace{20'000};
};

class LocalAgent {
 public:
  explicit LocalAgent(LocalAgentOptions options) : options_(std::move(options)) {}
  ~LocalAgent() { Stop(); }
  LocalAgent(const LocalAgent&) = delete;
  LocalAgent& operator=(const LocalAgent&) = delete;

  // Starts the thread; a program that cannot be executed is logged and tried again, since an
  // upgrade may be putting it in place. Error only where the system has no descriptor or thread
  // left.
  absl::Status Start();
  // Returns when the child is gone. Safe to call twice.
  void Stop();

  // Process id of the running child, 0 while there is none.
  pid_t pid() const { return pid_; }
  // How often the program was started.
  int64_t starts() const { return starts_; }

 private:
  void Loop();
  // True when `stop_fd_` became readable within the time.
  bool StopWithin(std::chrono::milliseconds wait) const;
  // Waits for the child's end or for Stop; then ends it. Returns false after Stop.
  bool Attend(pid_t child);

  const LocalAgentOptions options_;
  int stop_fd_ = -1;  // eventfd
  std::thread thread_;
  std::atomic<pid_t> pid_{0};
  std::atomic<int64_t> starts_{0};
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_LOCAL_AGENT_H_
