// Figures as people read them: tables and progress lines. Never for a file: results use the
// shortest text that reads back equal (common/results/json.h).
//
// The same in every locale: '.' for decimals and ',' for thousands. Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_TEXT_NUMBER_FORMAT_H_
#define ASSAY_COMMON_TEXT_NUMBER_FORMAT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

// Shortest text that reads back as the same double ("0.1", "1e+300"); "nan", "inf", "-inf".
std::string ShortestNumber(double value);

// With four significant digits and the whole part never cut: 14710.3 -> "14,710", 6124 -> "6,124",
// 812.53 -> "812.5", 1.8342 -> "1.834", 0.012345 -> "0.01235"; below 1e-4 and from 1e15 in exponent
// form, "1.235e-05". Not finite: "-".
std::string HumanNumber(double value, int significant_digits = 4);

// "1,234,567".
std::string HumanInteger(int64_t value);

// "1 cell", "1440 cells" for `one` = "cell".
std::string Counted(uint64_t count, std::string_view one);

// Powers of 1024 with three significant digits: "512 B", "1.50 GiB", "139 GiB". Negative: "-".
std::string HumanBytes(int64_t bytes);

// A ratio as a percentage with two significant digits, at most two decimals: 0.0123 -> "1.2 %",
// 0.9 -> "90 %", 0.00012 -> "0.01 %".
std::string HumanPercent(double ratio);

// A length of time: "0.85 s", "12 s", "3 min 05 s", "2 h 07 min", "3 d 04 h". Negative or not
// finite:
// "-".
std::string HumanDuration(double seconds);

// Time left, rounded up to what can be known: "under 5 s", "15 s", "1 min 20 s", "25 min", "2 h 10
// min"; seconds in fives, from ten minutes in whole minutes. Not known (negative, not finite): "-".
std::string HumanTimeLeft(double seconds);

}  // namespace assay

#endif  // ASSAY_COMMON_TEXT_NUMBER_FORMAT_H_
