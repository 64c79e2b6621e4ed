#include "common/results/timestamp.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::milliseconds;

std::optional<int> Digits(std::string_view text, size_t at, size_t count) {
  int value = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// Milliseconds of "", ".2" to ".123456789"; nullopt for anything else.
std::optional<int> Fraction(std::string_view text) {
  if (text.empty()) return 0;
  if (text[0] != '.' || text.size() < 2 || text.size() > 10) return std::nullopt;
  if (!Digits(text, 1, text.size() - 1)) return std::nullopt;
  int value = 0;
  for (size_t i = 1; i <= 3; ++i) value = value * 10 + (i < text.size() ? text[i] - '0' : 0);
  return value;
}

}  // namespace

std::string FormatTimestamp(std::chrono::sys_time<milliseconds> time) {
  constexpr auto kFirst = std::chrono::sys_days(std::chrono::year(0) / 1 / 1);
  constexpr auto kEnd = std::chrono::sys_days(std::chrono::year(10000) / 1 / 1);
  time = std::clamp<std::chrono::sys_time<milliseconds>>(time, kFirst, kEnd - milliseconds(1));
  const auto day = floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::optional<std::chrono::sys_time<milliseconds>> ParseTimestamp(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < kShape.size() + 1 || text.back() != 'Z') return std::nullopt;
  for (size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] != 'd' && text[i] != kShape[i]) return std::nullopt;
  }
  const auto year = Digits(text, 0, 4);
  const auto month = Digits(text, 5, 2);
  const auto day = Digits(text, 8, 2);
  const auto hour = Digits(text, 11, 2);
  const auto minute = Digits(text, 14, 2);
  const auto second = Digits(text, 17, 2);
  const auto millisecond = Fraction(text.substr(kShape.size(), text.size() - 1 - kShape.size()));
  if (!year || !month || !day || !hour || !minute || !second || !millisecond) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second) + milliseconds(*millisecond);
}

}  // namespace assay
