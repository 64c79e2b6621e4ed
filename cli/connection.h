// Connection: from the settings to a coordinator that answers.
//
// With an address: that coordinator. In local mode: the one of the state directory, which is
// started where none runs; two commands that start at the same time end with one coordinator, since
// its lock lets only one live.
//
// Thread rule: one owner.
#ifndef ASSAY_CLI_CONNECTION_H_
#define ASSAY_CLI_CONNECTION_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/control.h"
#include "common/clock/clock.h"
#include "common/net/transport.h"

namespace assay::cli {

struct ConnectionOptions {
  std::string state_dir;    // absolute; local mode
  std::string coordinator;  // address; empty: local mode
  // Bounds the wait for a coordinator that starts: it opens its store, which may have to be
  // migrated or recovered, before it listens.
  std::chrono::seconds start_limit{30};
  // A coordinator that holds the state directory for so long without an endpoint file is looked for
  // at the default socket: longer than one that leaves gives its agent to end a runner.
  std::chrono::milliseconds socket_after{8'000};
  int interrupt_fd = -1;  // Connect() ends with Cancelled when it becomes readable
  // Told of each coordinator that answered, before Connect() returns; may be empty.
  std::function<void(const CoordinatorInfo&)> on_connected;
};

// What a started coordinator is.
struct StartedProgram {
  pid_t pid = -1;
  int64_t log_offset = 0;  // size of the log before it wrote
};

// How Connection reaches the system; tests put their own in place.
struct ConnectionPorts {
  std::function<absl::StatusOr<std::unique_ptr<Control>>(const std::string& address)> open;
  std::function<absl::StatusOr<StartedProgram>(const std::string& state_dir)> start;
};

// gRPC over `transport`, and `assay-coordinator` beside this program.
ConnectionPorts SystemPorts(Transport transport = {});

class Connection {
 public:
  explicit Connection(ConnectionOptions options, ConnectionPorts ports = SystemPorts())
      : options_(std::move(options)), ports_(std::move(ports)) {}

  // A control whose coordinator has just answered GetInfo. Unavailable with one sentence and the
  // end of the log where there is none and none could be started; FailedPrecondition with the
  // sentence of one that refuses the files of the state directory; Cancelled after a Ctrl-C.
  absl::StatusOr<std::unique_ptr<Control>> Connect();
  // A Ctrl-C was taken: it no longer ends Connect(), which waits no longer than `start_limit` for a
  // coordinator that starts.
  void GoOnAfterInterrupt(std::chrono::seconds start_limit) {
    options_.interrupt_fd = -1;
    options_.start_limit = start_limit;
  }
  // Of the last Connect().
  const CoordinatorInfo& info() const { return info_; }
  bool local() const { return options_.coordinator.empty(); }

 private:
  absl::StatusOr<std::unique_ptr<Control>> Open(const std::string& address);
  // Unavailable where nobody answers behind the endpoint file; FailedPrecondition and
  // PermissionDenied of one that holds the state directory.
  absl::StatusOr<std::unique_ptr<Control>> OpenEndpoint();
  absl::StatusOr<std::unique_ptr<Control>> ConnectLocal();
  // False after a Ctrl-C.
  bool Sleep(std::chrono::milliseconds time) const;

  ConnectionOptions options_;
  ConnectionPorts ports_;
  CoordinatorInfo info_;
};

// Starts `assay-coordinator --local --state DIR` in a session of its own, with nothing open but its
// log (DIR/coordinator.log) and standard input from /dev/null.
absl::StatusOr<StartedProgram> StartLocalCoordinator(const std::string& state_dir);

// The last lines of DIR/coordinator.log from `offset` on, at most 10 of them; empty where none.
std::string LogTail(const std::string& state_dir, int64_t offset);

}  // namespace assay::cli

#endif  // ASSAY_CLI_CONNECTION_H_
