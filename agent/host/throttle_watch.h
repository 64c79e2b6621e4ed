// ThrottleWatch: how far the control group of this agent, in which its ranks run, kept them from
// running in an attempt's window. Reads files of some hundred bytes. Thread rule: one owner.
#ifndef ASSAY_AGENT_HOST_THROTTLE_WATCH_H_
#define ASSAY_AGENT_HOST_THROTTLE_WATCH_H_

#include <optional>
#include <string>

#include "agent/host/proc_files.h"
#include "common/results/record.h"

namespace assay {

class ThrottleWatch {
 public:
  ThrottleWatch(std::string proc_root, std::string sys_root)
      : proc_root_(std::move(proc_root)), sys_root_(std::move(sys_root)) {}

  // The first call of each counts. End without Begin is nothing.
  void Begin();
  void End();

  // Sets cpu_quota_cores where there is one; cpu_throttled_periods and cpu_throttled_seconds of the
  // window where the kernel tells them.
  void Fill(Record& record) const;

 private:
  const std::string proc_root_, sys_root_;
  bool begun_ = false;
  std::optional<double> quota_;
  std::optional<CpuThrottling> begin_, end_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_HOST_THROTTLE_WATCH_H_
