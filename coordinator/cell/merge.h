// Merge: what the reports of a gang's ranks come to as one result. Pure; any thread.
//
// The worst rank decides and a missing rank is never a slow one: a throughput exists only where
// every rank of the gang reported ok. It is the global samples over the longest window of a rank
// (docs/method.md).
#ifndef ASSAY_COORDINATOR_CELL_MERGE_H_
#define ASSAY_COORDINATOR_CELL_MERGE_H_

#include <optional>
#include <string>
#include <vector>

#include "coordinator/cell/events.h"
#include "coordinator/cell/rows.h"

namespace assay {

// What the coordinator decided on a gang before its ranks reported: cancelled, timeout, hung, lost
// or fail with join_timeout.
struct Decision {
  Outcome outcome = Outcome::kFail;
  std::string reason;
  std::string message;
};

struct MergedResult {
  Outcome outcome = Outcome::kFail;
  std::string reason;
  std::string message;
  Record record;                   // runner and agent fields; no throughput unless ok
  std::string log_tail;            // of the rank that decided
  int64_t started_at_unix_ms = 0;  // of the agent of rank 0; 0 where it did not report
  double seconds = 0;              // longest of the agents'
  bool complete = false;           // every rank reported
};

// `reports` in any order, at most one from each agent; ranks that no member has are dropped, and of
// two reports of one rank the first counts.
MergedResult MergeReports(const std::vector<MemberRow>& members,
                          const std::vector<const event::AttemptReport*>& reports,
                          const std::optional<Decision>& decided);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_CELL_MERGE_H_
