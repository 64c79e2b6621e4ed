#include "common/matrix/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/ids/ids.h"
#include "common/status/status.h"

namespace assay {
namespace {

constexpr size_t kMaxSliceIdBytes = 64;

// False for what is no whole number from 1, signs and spaces included.
bool TakeNumber(std::string_view text, uint32_t* number) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && rest == end && *number >= 1;
}

bool IsIdCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

}  // namespace

std::string Slice::ToString() const {
  return IsWhole() ? std::string() : fmt::format("{}/{}", index, count);
}

absl::Status CheckSlice(const Slice& slice) {
  if (slice.IsWhole()) {
    if (slice.index == 0 && slice.id.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("a slice of nothing");
  }
  if (slice.index < 1 || slice.index > slice.count) {
    return absl::InvalidArgumentError(fmt::format(
        "there is no slice {} of {}: slices are numbered from 1", slice.index, slice.count));
  }
  if (slice.count > kMaxSlices) {
    return absl::InvalidArgumentError(
        fmt::format("{} slices; at most {} are taken", slice.count, kMaxSlices));
  }
  if (slice.id.size() > kMaxSliceIdBytes ||
      !std::all_of(slice.id.begin(), slice.id.end(), IsIdCharacter)) {
    return absl::InvalidArgumentError(
        fmt::format("a slice id is at most {} letters, digits and _ . -", kMaxSliceIdBytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<Slice> ParseSlice(std::string_view text, std::string_view id) {
  Slice slice;
  const size_t stroke = text.find('/');
  const bool numbers = stroke != std::string_view::npos &&
                       TakeNumber(text.substr(0, stroke), &slice.index) &&
                       TakeNumber(text.substr(stroke + 1), &slice.count);
  if (!numbers) {
    return absl::InvalidArgumentError("a slice is I/N with I from 1 to N, for example 2/4");
  }
  slice.id = id;
  ASSAY_RETURN_IF_ERROR(CheckSlice(slice));
  return slice;
}

std::string SlicedRunId(std::string_view digest, const Slice& slice) {
  const std::string hex =
      Sha256Hex(fmt::format("assay slices\n{}\n{}\n{}", digest, slice.count, slice.id));
  // 26 digits of 5 bits would hold 130 bits: the first has 3.
  static constexpr char kAlphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  unsigned __int128 value = 0;
  for (int i = 0; i < 32; ++i) {
    const char c = hex[static_cast<size_t>(i)];
    value = (value << 4) | static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  std::string text(26, '0');
  for (int i = 25; i >= 0; --i, value >>= 5) {
    text[static_cast<size_t>(i)] = kAlphabet[static_cast<size_t>(value & 31)];
  }
  return text;
}

}  // namespace assay
