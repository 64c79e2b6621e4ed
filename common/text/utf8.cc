#include "common/text/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace assay {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

using Range = std::pair<char32_t, char32_t>;

constexpr std::array<Range, 26> kWide = {{
    {0x1100, 0x115F},   {0x231A, 0x231B}, {0x2329, 0x232A}, {0x23E9, 0x23EC}, {0x25FD, 0x25FE},
    {0x2614, 0x2615},   {0x2648, 0x2653}, {0x26AA, 0x26AB}, {0x26BD, 0x26BE}, {0x26C4, 0x26C5},
    {0x26F2, 0x26F5},   {0x2705, 0x2705}, {0x270A, 0x270B}, {0x2728, 0x2728}, {0x274C, 0x274C},
    {0x2753, 0x2757},   {0x2E80, 0x303E}, {0x3041, 0xA4CF}, {0xA960, 0xA97C}, {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF},
    {0x20000, 0x3FFFD},
}};

constexpr std::array<Range, 16> kZeroWidth = {{
    {0x0000, 0x001F},
    {0x007F, 0x009F},
    {0x0300, 0x036F},
    {0x0483, 0x0489},
    {0x0591, 0x05BD},
    {0x0610, 0x061A},
    {0x064B, 0x065F},
    {0x0E34, 0x0E3A},
    {0x1AB0, 0x1AFF},
    {0x1DC0, 0x1DFF},
    {0x200B, 0x200F},
    {0x202A, 0x202E},
    {0x2060, 0x2064},
    {0x20D0, 0x20FF},
    {0xFE00, 0xFE0F},
    {0xFEFF, 0xFEFF},
}};

template <size_t kSize>
bool InRanges(const std::array<Range, kSize>& ranges, char32_t point) {
  return std::any_of(ranges.begin(), ranges.end(), [point](const Range& range) {
    return point >= range.first && point <= range.second;
  });
}

size_t WidthOf(char32_t point) {
  if (InRanges(kZeroWidth, point)) return 0;
  return InRanges(kWide, point) ? 2 : 1;
}

bool IsControl(char32_t point) { return point < 0x20 || (point >= 0x7F && point <= 0x9F); }

}  // namespace

Utf8Front DecodeFront(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  size_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;  // bounds of the second byte
  char32_t point = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    point = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    point = lead & 0x0F;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    point = lead & 0x07;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {};
  }
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {0xFFFD, i, false};
    point = (point << 6) | (byte(i) & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {point, length, true};
}

bool IsUtf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const Utf8Front decoded = DecodeFront(bytes.substr(i));
    if (!decoded.valid) return false;
    i += decoded.bytes;
  }
  return true;
}

std::string ScrubUtf8(std::string_view bytes) {
  std::string clean;
  clean.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const Utf8Front decoded = DecodeFront(bytes.substr(i));
    clean += decoded.valid ? bytes.substr(i, decoded.bytes) : kReplacement;
    i += decoded.bytes;
  }
  return clean;
}

std::string ScrubForTerminal(std::string_view bytes) {
  std::string clean;
  clean.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const Utf8Front decoded = DecodeFront(bytes.substr(i));
    const bool harmless = decoded.point == '\n' || decoded.point == '\t';
    const bool keep = decoded.valid && (harmless || !IsControl(decoded.point));
    clean += keep ? bytes.substr(i, decoded.bytes) : kReplacement;
    i += decoded.bytes;
  }
  return clean;
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size();) {
    const Utf8Front decoded = DecodeFront(text.substr(i));
    width += WidthOf(decoded.point);
    i += decoded.bytes;
  }
  return width;
}

std::string TruncateToWidth(std::string_view text, size_t columns) {
  if (DisplayWidth(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  size_t width = 0;
  size_t end = 0;
  while (end < text.size()) {
    const Utf8Front decoded = DecodeFront(text.substr(end));
    const size_t wider = width + WidthOf(decoded.point);
    if (wider > columns - 1) break;
    width = wider;
    end += decoded.bytes;
  }
  return std::string(text.substr(0, end)) + "\xE2\x80\xA6";  // U+2026
}

size_t Utf8Boundary(std::string_view text, size_t at) {
  if (at >= text.size()) return text.size();
  // A sequence has at most 4 bytes, so its lead lies at most 3 before `at`.
  for (size_t back = 1; back <= 3 && back <= at; ++back) {
    const size_t start = at - back;
    const auto lead = static_cast<uint8_t>(text[start]);
    if ((lead & 0xC0) == 0x80) continue;
    const Utf8Front decoded = DecodeFront(text.substr(start));
    return decoded.valid && start + decoded.bytes > at ? start : at;
  }
  return at;
}

}  // namespace assay
