// One character of UTF-8 at a time, by the rules of common/text/utf8.h.
#ifndef ASSAY_COMMON_YAML_UTF8_SEQUENCE_H_
#define ASSAY_COMMON_YAML_UTF8_SEQUENCE_H_

#include <cstddef>
#include <string_view>

#include "common/text/utf8.h"

namespace assay {

// Bytes of the character that `text` starts with, or 0 where it starts with none.
inline size_t Utf8SequenceLength(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned char first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  return text.size() >= length && IsUtf8(text.substr(0, length)) ? length : 0;
}

}  // namespace assay

#endif  // ASSAY_COMMON_YAML_UTF8_SEQUENCE_H_
