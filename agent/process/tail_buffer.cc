#include "agent/process/tail_buffer.h"

#include <algorithm>

namespace assay {

void TailBuffer::Append(std::string_view bytes) {
  if (bytes.size() > limit_) bytes.remove_prefix(bytes.size() - limit_);
  const size_t room = std::min(limit_ - ring_.size(), bytes.size());
  ring_.append(bytes.substr(0, room));
  bytes.remove_prefix(room);
  while (!bytes.empty()) {
    const size_t part = std::min(bytes.size(), limit_ - start_);
    ring_.replace(start_, part, bytes.substr(0, part));
    start_ = (start_ + part) % limit_;
    bytes.remove_prefix(part);
  }
}

std::string TailBuffer::Text() const { return ring_.substr(start_) + ring_.substr(0, start_); }

}  // namespace assay
