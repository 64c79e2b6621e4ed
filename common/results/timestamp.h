// Times as results write them: ISO 8601 in UTC with Z, whatever TZ says. Only for showing:
// durations come from a steady clock.
//
// Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_TIMESTAMP_H_
#define ASSAY_COMMON_RESULTS_TIMESTAMP_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

// "2026-03-29T01:30:00.250Z". Years outside 0 to 9999 are cut to that range.
std::string FormatTimestamp(std::chrono::sys_time<std::chrono::milliseconds> time);

// Reads that form, with or without the fraction (up to nine digits; cut to milliseconds). nullopt
// for anything else, an offset other than Z or a date that does not exist.
std::optional<std::chrono::sys_time<std::chrono::milliseconds>> ParseTimestamp(
    std::string_view text);

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_TIMESTAMP_H_
