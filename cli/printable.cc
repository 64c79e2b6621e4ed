#include "cli/printable.h"

#include "common/text/utf8.h"

namespace assay::cli {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

bool TurnsDirection(char32_t c) {
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
size_t ControlLength(std::string_view text, size_t at, const Utf8Front& c) {
  if (c.point == 0x1B) {
    if (at + 1 >= text.size()) return 1;
    const char next = text[at + 1];
    if (std::string_view("[]PX^_").find(next) != std::string_view::npos) {
      return EscapeLength(text, at, 2, next);
    }
    size_t i = at + 1;
    while (i < text.size() && text[i] >= 0x20 && text[i] <= 0x2F) ++i;
    return i < text.size() && text[i] >= 0x30 && text[i] <= 0x7E ? i + 1 - at : 1;
  }
  switch (c.point) {
    case 0x9B:
      return EscapeLength(text, at, c.bytes, '[');
    case 0x90:
    case 0x98:
    case 0x9D:
    case 0x9E:
    case 0x9F:
      return EscapeLength(text, at, c.bytes, ']');
    default:
      return c.bytes;
  }
}

std::string Clean(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Utf8Front c = DecodeFront(text.substr(i));
    if (!c.valid) {
      out += kReplacement;
      i += c.bytes;
    } else if (c.point == '\n' || c.point == '\r') {
      const bool pair = c.point == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
      out += lines ? '\n' : ' ';
      i += pair ? 2 : 1;
    } else if (c.point == '\t') {
      out += lines ? "    " : " ";
      ++i;
    } else if (c.point < 0x20 || (c.point >= 0x7F && c.point <= 0x9F)) {
      i += ControlLength(text, i, c);
    } else {
      if (!TurnsDirection(c.point) && c.point != 0x2028 && c.point != 0x2029) {
        out.append(text.substr(i, c.bytes));
      }
      i += c.bytes;
    }
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text) { return Clean(text, false); }

std::string PrintableLines(std::string_view text) { return Clean(text, true); }

}  // namespace assay::cli
