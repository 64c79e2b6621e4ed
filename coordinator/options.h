// Options of assay-coordinator: flag over ASSAY_* over file over default
// (common/config/settings.h).
#ifndef ASSAY_COORDINATOR_OPTIONS_H_
#define ASSAY_COORDINATOR_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/net/transport.h"

namespace assay {

struct CoordinatorOptions {
  std::string state;   // resolved, absolute
  std::string listen;  // empty: a Unix socket of the state directory (--local)
  bool local = false;
  Transport transport;
  double idle_exit_seconds = 0;  // 0: never
  double heartbeat_seconds = 10;
  std::vector<std::string> agent_args;
  std::string log_level;
  std::string config_file;  // the one that was read; empty: none

  // What to print instead of running: help, version or the configuration; empty else.
  std::string print;
};

// InvalidArgument with one sentence. Reads the environment.
absl::StatusOr<CoordinatorOptions> ParseCoordinatorOptions(int argc, const char* const* argv);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_OPTIONS_H_
