#include "agent/telemetry/exclusivity.h"

namespace assay {

void Exclusivity::Before(const std::optional<uint64_t>& used_bytes,
                         const absl::StatusOr<std::vector<int64_t>>& pids) {
  seen_before_ = true;
  idle_before_ = idle_before_ && used_bytes && *used_bytes < kIdleBaselineBytes;
  listed_ = listed_ && pids.ok();
  if (!pids.ok()) return;
  // Nothing of this attempt runs yet: whoever is there is somebody else.
  if (!foreign_pids_) foreign_pids_.emplace();
  foreign_pids_->insert(pids->begin(), pids->end());
  if (!pids->empty()) foreign_ = true;
}

void Exclusivity::During(const absl::StatusOr<std::vector<int64_t>>& pids,
                         const std::function<Ancestry(int64_t)>& ancestry) {
  // An empty list while we are at work means that it hides processes.
  listed_ = listed_ && pids.ok() && !pids->empty();
  checked_in_window_ = true;
  if (!pids.ok()) return;
  if (!foreign_pids_) foreign_pids_.emplace();
  size_t ours = 0, unseen = 0;
  for (const int64_t pid : *pids) {
    const Ancestry whose = ancestry(pid);
    if (whose == Ancestry::kForeign) foreign_pids_->insert(pid);
    if (whose == Ancestry::kForeign) foreign_ = true;
    if (whose == Ancestry::kOurs) ++ours;
    if (whose == Ancestry::kUnseen) ++unseen;
  }
  if (unseen > 0) listed_ = false;
  // A device has one rank of ours, seen or not.
  if (unseen > 0 && ours + unseen > 1) foreign_ = true;
}

std::string_view Exclusivity::Word() const {
  if (!seen_before_ || !idle_before_ || foreign_) return "unknown";
  return listed_ && checked_in_window_ ? "verified" : "inferred";
}

}  // namespace assay
