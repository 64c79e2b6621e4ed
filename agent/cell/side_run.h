// SideRun: processes that an attempt's GPUs run beside its own: the load that settles them, the
// sentinel. What they say is read for their phase and result; no figure of it becomes the cell's.
//
// Owner: HeldGang. Thread rule: the loop's thread; it must not be destroyed from within a callback
// of one of its processes.
#ifndef ASSAY_AGENT_CELL_SIDE_RUN_H_
#define ASSAY_AGENT_CELL_SIDE_RUN_H_

#include <memory>
#include <string>
#include <vector>

#include "agent/cell/ports.h"
#include "agent/cell/record_lines.h"
#include "agent/cell/settle_rule.h"
#include "agent/process/child_process.h"
#include "common/clock/clock.h"

namespace assay {

class SideRun {
 public:
  // All outlive this.
  SideRun(EventLoop& loop, OrphanReaper& reaper, const Clock& clock);
  ~SideRun();

  absl::Status Spawn(const ChildSpec& spec);
  void Stop(std::chrono::nanoseconds grace);

  SettleLoad load() const;
  // True when every process and its tree has gone, also where none was started.
  bool Gone() const;
  // Of all processes together, once each has said `ok`; nullopt before, and where one did not.
  std::optional<double> throughput() const;
  std::vector<pid_t> pids() const;

 private:
  class Rank;

  EventLoop& loop_;
  OrphanReaper& reaper_;
  const Clock& clock_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_SIDE_RUN_H_
