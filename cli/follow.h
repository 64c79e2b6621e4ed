// Follow: a run from now to its end, whatever happens to the coordinator meanwhile.
#ifndef ASSAY_CLI_FOLLOW_H_
#define ASSAY_CLI_FOLLOW_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "cli/control.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "common/clock/clock.h"

namespace assay::cli {

enum class OnInterrupt {
  // Ask the coordinator, then wait until every process of the run is gone. One that is away is
  // looked for, in local mode started again, for `cancel_limit`.
  kCancelRun,
  kLeave,  // the run goes on
};

struct FollowOptions {
  OnInterrupt on_interrupt = OnInterrupt::kLeave;
  int interrupt_fd = -1;  // readable after a Ctrl-C or its like; -1: none
  // Tries to reach a lost coordinator again before it is given up: some ten seconds in all.
  int most_tries = 5;
  std::chrono::milliseconds first_pause{200};
  // Somebody stands at the terminal, or a batch system is about to send SIGKILL.
  std::chrono::seconds cancel_limit{15};
};

struct FollowResult {
  absl::Status status;  // OK: followed to its end, or left after a Ctrl-C
  bool interrupted = false;
  std::optional<RunUpdate> last;
};

// Returns with the run's final update, when kLeave left, or when the coordinator is lost for good.
// Does not call view.Finish().
FollowResult Follow(Session& session, const std::string& run, const FollowOptions& options,
                    ProgressView& view, const Clock& clock);

}  // namespace assay::cli

#endif  // ASSAY_CLI_FOLLOW_H_
