// TailBuffer: the last bytes of a text without end, such as a child's standard error, in bounded
// memory.
//
// Thread rule: one owner.
#ifndef ASSAY_COMMON_TEXT_TAIL_BUFFER_H_
#define ASSAY_COMMON_TEXT_TAIL_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

class TailBuffer {
 public:
  // Keeps at least the last `most_bytes` and at most twice as many in memory.
  explicit TailBuffer(size_t most_bytes);

  void Append(std::string_view bytes);

  uint64_t total_bytes() const { return total_bytes_; }

  // The end, from at most most_bytes of the source, as valid UTF-8 (an ill-formed part is U+FFFD,
  // which takes three bytes): from the first whole line on where a line border is there, else from
  // the first whole character. Before it the line "[... 123,456 bytes cut]" where something was
  // cut.
  std::string Text() const;

 private:
  size_t most_bytes_;
  uint64_t total_bytes_ = 0;
  std::string kept_;
};

// The same for a text at hand.
std::string KeepTail(std::string_view text, size_t most_bytes);

}  // namespace assay

#endif  // ASSAY_COMMON_TEXT_TAIL_BUFFER_H_
