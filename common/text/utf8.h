// The one UTF-8 scrubber, and how wide text stands in a terminal.
//
// Thread rule: pure functions, any thread.
#ifndef ASSAY_COMMON_TEXT_UTF8_H_
#define ASSAY_COMMON_TEXT_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace assay {

struct Utf8Front {
  char32_t point = 0xFFFD;
  size_t bytes = 1;
  bool valid = false;
};
// What stands at the front of `text`, which is not empty: a code point, or the maximal ill-formed
// part as U+FFFD.
Utf8Front DecodeFront(std::string_view text);

// True where every byte belongs to a well-formed sequence (Unicode 15, table 3-7: no overlong form,
// no surrogate, nothing above U+10FFFF).
bool IsUtf8(std::string_view bytes);

// The same text with U+FFFD for each maximal ill-formed part (Unicode 15, section 3.9,
// "Substitution of Maximal Subparts"), as browsers and Python do. Well-formed text comes back
// unchanged.
std::string ScrubUtf8(std::string_view bytes);

// ScrubUtf8, and every control character (C0, DEL, C1) but the line feed and the tab becomes
// U+FFFD: for text of a child or a peer that goes to a terminal or a log, where an escape sequence
// must not act.
std::string ScrubForTerminal(std::string_view bytes);

// Columns that `text` takes in a terminal: 2 for East Asian wide and emoji, 0 for combining marks,
// joiners and control characters, 1 for the rest (Unicode 15, East Asian Width, ranges as in Markus
// Kuhn's wcwidth). Ill-formed parts count as U+FFFD. Locale-free, unlike wcwidth(3).
size_t DisplayWidth(std::string_view text);

// `text` cut to at most `columns`, with "…" as its last column where something was cut. Never cuts
// inside a character.
std::string TruncateToWidth(std::string_view text, size_t columns);

// The largest n <= at so that text[0, n) does not end inside a well-formed sequence.
size_t Utf8Boundary(std::string_view text, size_t at);

}  // namespace assay

#endif  // ASSAY_COMMON_TEXT_UTF8_H_
