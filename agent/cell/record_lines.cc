#include "agent/cell/record_lines.h"

#include <utility>

namespace assay {

void RecordLines::Append(std::string_view bytes,
                         const std::function<void(std::string_view)>& line) {
  constexpr size_t kCut = static_cast<size_t>(record::kMaxLineBytes) + 1;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (!skipping_) {
      partial_.append(part.substr(0, kCut - partial_.size()));
      if (partial_.size() >= kCut) {
        skipping_ = true;
        line(std::exchange(partial_, {}));
      }
    }
    if (end == std::string_view::npos) return;
    if (!std::exchange(skipping_, false) && !partial_.empty()) line(partial_);
    partial_.clear();
  }
}

std::string RecordLines::TakeRest() { return std::exchange(partial_, {}); }

}  // namespace assay
