// TailBuffer: the last N bytes of a stream, in constant memory.
#ifndef ASSAY_AGENT_PROCESS_TAIL_BUFFER_H_
#define ASSAY_AGENT_PROCESS_TAIL_BUFFER_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace assay {

// Thread rule: one owner.
class TailBuffer {
 public:
  explicit TailBuffer(size_t limit_bytes) : limit_(limit_bytes) {}

  void Append(std::string_view bytes);
  // Oldest first; any bytes.
  std::string Text() const;

 private:
  size_t limit_;
  std::string ring_;
  size_t start_ = 0;  // of the oldest byte, once the ring is full
};

}  // namespace assay

#endif  // ASSAY_AGENT_PROCESS_TAIL_BUFFER_H_
