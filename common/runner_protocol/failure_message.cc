#include "common/runner_protocol/failure_message.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>

namespace assay {
namespace {

constexpr std::string_view kRemedy = ": use a smaller batch, or accumulate";

std::string OnOneLine(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
    if (!space) {
      line.push_back(c);
    } else if (!line.empty() && line.back() != ' ') {
      line.push_back(' ');
    }
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

// Of the last sentence or clause in line[0, limit) that is worth stopping at: half the room is
// used.
size_t LastBorder(std::string_view line, size_t limit) {
  for (size_t i = limit; i > limit / 2; --i) {
    if (line[i] == ' ' && (line[i - 1] == '.' || line[i - 1] == ';' || line[i - 1] == '!')) {
      return line[i - 1] == ';' ? i - 1 : i;
    }
  }
  return 0;
}

// The text between `before` and the first of `ends`; empty where it is not there or absurdly long.
std::string_view Between(std::string_view text, std::string_view before, std::string_view ends) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  const size_t size = text.find_first_of(ends);
  return size > 32 ? std::string_view() : text.substr(0, size);  // npos is more, too
}

// "2.30 GiB" of "Tried to allocate 2.30 GiB. GPU 0 has": a number and a unit.
std::string_view SizeAfter(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  const size_t number = text.find_first_not_of("0123456789.");
  if (number == 0 || number == std::string_view::npos || text[number] != ' ') return {};
  size_t end = number + 1;
  while (end < text.size() && std::isalpha(static_cast<unsigned char>(text[end])) != 0) ++end;
  return end == number + 1 || end > 24 ? std::string_view() : text.substr(0, end);
}

std::string BinarySize(double bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.2f %s", bytes, kUnits[unit]);
  return text;
}

std::string OfCuda(std::string_view text) {
  const std::string_view asked = SizeAfter(text, "Tried to allocate ");
  if (asked.empty()) return "the GPU's memory is used up" + std::string(kRemedy);
  std::string message = std::string(asked) + " more were asked for";
  if (const std::string_view gpu = Between(text, " GPU ", " "); !gpu.empty()) {
    message += " on GPU " + std::string(gpu);
  }
  const std::string_view total = SizeAfter(text, "total capacity of ");
  if (!total.empty()) message += " of " + std::string(total);
  const std::string_view free = SizeAfter(text, "of which ");
  if (!total.empty() && !free.empty()) message += ", of which " + std::string(free) + " were free";
  return message + std::string(kRemedy);
}

std::string OfCpu(std::string_view text) {
  const std::string bytes(Between(text, "you tried to allocate ", " "));
  std::string message = "the host's memory is used up";
  if (const double asked = std::atof(bytes.c_str()); asked > 0) {
    message = BinarySize(asked) + " more were asked for than the host's memory has left";
  }
  return message + std::string(kRemedy);
}

}  // namespace

std::string ShortMessage(std::string_view text) {
  // Far more than is kept; a message of megabytes is not worth walking through.
  std::string line = OnOneLine(text.substr(0, 64 * kMaxFailureMessageBytes));
  if (line.size() <= kMaxFailureMessageBytes) return line;
  if (const size_t border = LastBorder(line, kMaxFailureMessageBytes))
    return line.substr(0, border);
  constexpr std::string_view kCut = "...";
  size_t end = kMaxFailureMessageBytes - kCut.size();
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
  const size_t word = line.rfind(' ', end);
  if (word != std::string::npos && word > end / 2) end = word;
  return line.substr(0, end) + std::string(kCut);
}

std::optional<std::string> OutOfMemoryMessage(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (has("CUDA out of memory") || has("CUDA error: out of memory")) return OfCuda(text);
  if (has("DefaultCPUAllocator")) return OfCpu(text);
  return std::nullopt;
}

}  // namespace assay
