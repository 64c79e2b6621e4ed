#include "cli/printable.h"

#include <cstdint>

namespace assay::cli {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

struct CodePoint {
  uint32_t value = 0;
  size_t length = 1;
  bool valid = false;
};

bool IsContinuation(unsigned char c) { return (c & 0xC0) == 0x80; }

CodePoint Decode(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1, true};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return {};
  uint32_t value = first & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(byte(at + i))) return {};
    value = (value << 6) | (byte(at + i) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, length, true};
}

bool TurnsDirection(uint32_t c) {
  return c == 0x200E || c == 0x200F || c == 0x061C || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

// Length of the escape sequence that starts at `at` (an ESC or a C1 introducer of `lead` bytes).
// One that never ends takes only its introducer: what follows is shown as plain text.
size_t EscapeLength(std::string_view text, size_t at, size_t lead, char kind) {
  size_t i = at + lead;
  if (kind == '[') {
    while (i < text.size() && text[i] >= 0x20 && text[i] <= 0x3F) ++i;
    return i < text.size() && text[i] >= 0x40 && text[i] <= 0x7E ? i + 1 - at : lead;
  }
  // OSC, DCS, SOS, PM, APC: up to BEL or ST. A title of 4 KiB is none.
  for (; i < text.size() && i < at + 4096; ++i) {
    if (text[i] == '\a') return i + 1 - at;
    if (text[i] == '\x1B' && i + 1 < text.size() && text[i + 1] == '\\') return i + 2 - at;
    if (text[i] == '\n') break;
  }
  return lead;
}

// Bytes to skip at `at` where a control character stands there.
size_t ControlLength(std::string_view text, size_t at, const CodePoint& c) {
  if (c.value == 0x1B) {
    if (at + 1 >= text.size()) return 1;
    const char next = text[at + 1];
    if (std::string_view("[]PX^_").find(next) != std::string_view::npos) {
      return EscapeLength(text, at, 2, next);
    }
    size_t i = at + 1;
    while (i < text.size() && text[i] >= 0x20 && text[i] <= 0x2F) ++i;
    return i < text.size() && text[i] >= 0x30 && text[i] <= 0x7E ? i + 1 - at : 1;
  }
  switch (c.value) {
    case 0x9B:
      return EscapeLength(text, at, c.length, '[');
    case 0x90:
    case 0x98:
    case 0x9D:
    case 0x9E:
    case 0x9F:
      return EscapeLength(text, at, c.length, ']');
    default:
      return c.length;
  }
}

std::string Clean(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = Decode(text, i);
    if (!c.valid) {
      out += kReplacement;
      ++i;
    } else if (c.value == '\n' || c.value == '\r') {
      const bool pair = c.value == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
      out += lines ? '\n' : ' ';
      i += pair ? 2 : 1;
    } else if (c.value == '\t') {
      out += lines ? "    " : " ";
      ++i;
    } else if (c.value < 0x20 || (c.value >= 0x7F && c.value <= 0x9F)) {
      i += ControlLength(text, i, c);
    } else {
      if (!TurnsDirection(c.value) && c.value != 0x2028 && c.value != 0x2029) {
        out.append(text.substr(i, c.length));
      }
      i += c.length;
    }
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text) { return Clean(text, false); }

std::string PrintableLines(std::string_view text) { return Clean(text, true); }

}  // namespace assay::cli
