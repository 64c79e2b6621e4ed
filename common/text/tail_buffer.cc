#include "common/text/tail_buffer.h"

#include <fmt/format.h>

#include "common/text/number_format.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The end of `text` as TailBuffer::Text gives it; `lost` bytes before it are gone already.
std::string Tail(std::string_view text, uint64_t lost, size_t most_bytes) {
  if (lost == 0 && text.size() <= most_bytes) return ScrubUtf8(text);
  size_t start = text.size() > most_bytes ? text.size() - most_bytes : 0;
  // A sequence has at most three bytes after its first.
  for (int i = 0; i < 3 && start < text.size() && IsContinuation(text[start]); ++i) ++start;
  const bool at_line_start = start > 0 && text[start - 1] == '\n';
  if (!at_line_start) {
    const size_t line_end = text.find('\n', start);
    if (line_end != std::string_view::npos && line_end + 1 < text.size()) start = line_end + 1;
  }
  return fmt::format("[... {} bytes cut]\n", HumanInteger(static_cast<int64_t>(lost + start))) +
         ScrubUtf8(text.substr(start));
}

}  // namespace

TailBuffer::TailBuffer(size_t most_bytes) : most_bytes_(most_bytes) {}

void TailBuffer::Append(std::string_view bytes) {
  total_bytes_ += bytes.size();
  // One more than asked for, so that a line border just before the kept part is seen.
  const size_t keep = most_bytes_ + 1;
  if (bytes.size() >= keep) {
    kept_.assign(bytes.substr(bytes.size() - keep));
    return;
  }
  if (kept_.size() + bytes.size() > 2 * keep) kept_.erase(0, kept_.size() + bytes.size() - keep);
  kept_ += bytes;
}

std::string TailBuffer::Text() const {
  return Tail(kept_, total_bytes_ - kept_.size(), most_bytes_);
}

std::string KeepTail(std::string_view text, size_t most_bytes) {
  TailBuffer buffer(most_bytes);
  buffer.Append(text);
  return buffer.Text();
}

}  // namespace assay
