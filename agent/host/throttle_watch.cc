#include "agent/host/throttle_watch.h"

namespace assay {

void ThrottleWatch::Begin() {
  if (begun_) return;
  begun_ = true;
  quota_ = CgroupCpuQuota(proc_root_, sys_root_);
  begin_ = CgroupThrottling(proc_root_, sys_root_);
}

void ThrottleWatch::End() {
  if (begun_ && !end_) end_ = CgroupThrottling(proc_root_, sys_root_);
}

void ThrottleWatch::Fill(Record& record) const {
  if (quota_) record.Set(Field::kCpuQuotaCores, *quota_).IgnoreError();
  // Fewer than before: moved into another group meanwhile.
  if (!begin_ || !end_ || end_->periods < begin_->periods || end_->seconds < begin_->seconds) {
    return;
  }
  record.Set(Field::kCpuThrottledPeriods, static_cast<int64_t>(end_->periods - begin_->periods))
      .IgnoreError();
  record.Set(Field::kCpuThrottledSeconds, end_->seconds - begin_->seconds).IgnoreError();
}

}  // namespace assay
