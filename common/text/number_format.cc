#include "common/text/number_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

namespace assay {
namespace {

constexpr std::string_view kNothing = "-";

std::string FixedDecimals(double value, int decimals) {
  // 15 significant digits before the point at most (HumanNumber), so that this is ample.
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value,
                                          std::chars_format::fixed, decimals);
  if (error != std::errc()) return std::string(kNothing);
  return {text.data(), end};
}

// Commas into the whole part of a plain decimal text.
std::string WithThousands(std::string text) {
  size_t end = text.find('.');
  if (end == std::string::npos) end = text.size();
  const size_t begin = text.starts_with('-') ? 1 : 0;
  while (end > begin + 3) {
    end -= 3;
    text.insert(end, 1, ',');
  }
  return text;
}

}  // namespace

std::string ShortestNumber(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::string(text.data(), end) : std::string("nan");
}

std::string HumanNumber(double value, int significant_digits) {
  if (!std::isfinite(value)) return std::string(kNothing);
  if (value == 0) return "0";
  const int digits = std::clamp(significant_digits, 1, 15);
  const double size = std::abs(value);
  if (size < 1e-4 || size >= 1e15) {
    return fmt::format("{:.{}e}", value, digits - 1);
  }
  int decimals = digits - 1 - static_cast<int>(std::floor(std::log10(size)));
  // 999.96 with four digits rounds up to a fifth: "1000.0" shows a digit that is not there.
  const double step = std::pow(10.0, -decimals);
  if (std::round(size / step) * step >= std::pow(10.0, digits - decimals)) --decimals;
  return WithThousands(FixedDecimals(value, std::max(decimals, 0)));
}

std::string HumanInteger(int64_t value) { return WithThousands(fmt::format("{}", value)); }

std::string Counted(uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string HumanBytes(int64_t bytes) {
  if (bytes < 0) return std::string(kNothing);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::array<std::string_view, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (value /= 1024; value >= 1023.5 && unit + 1 < kUnits.size(); value /= 1024) ++unit;
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{} {}", FixedDecimals(value, decimals), kUnits[unit]);
}

std::string HumanPercent(double ratio) {
  if (!std::isfinite(ratio)) return std::string(kNothing);
  const double percent = ratio * 100;
  const double size = std::abs(percent);
  const int decimals = size >= 9.95 || size == 0 ? 0 : size >= 0.095 ? 1 : 2;
  return fmt::format("{} %", FixedDecimals(percent, decimals));
}

std::string HumanDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return std::string(kNothing);
  if (seconds < 9.995) return fmt::format("{} s", FixedDecimals(seconds, 2));
  if (seconds >= 1e9) return fmt::format("{} d", HumanNumber(seconds / 86400));
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {:02} h", whole / 86400, whole % 86400 / 3600);
}

std::string HumanTimeLeft(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return std::string(kNothing);
  if (seconds < 5) return "under 5 s";
  const auto up = [](double value, int64_t step) {
    return static_cast<int64_t>(std::ceil(value / static_cast<double>(step))) * step;
  };
  if (seconds <= 595) {
    const int64_t left = up(seconds, 5);
    if (left < 60) return fmt::format("{} s", left);
    if (left % 60 == 0) return fmt::format("{} min", left / 60);
    return fmt::format("{} min {:02} s", left / 60, left % 60);
  }
  const int64_t minutes = up(seconds, 60) / 60;
  if (minutes < 60) return fmt::format("{} min", minutes);
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

}  // namespace assay
