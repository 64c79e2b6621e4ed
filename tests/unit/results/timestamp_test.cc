#include "common/results/timestamp.h"

#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>

namespace assay {
namespace {

using std::chrono::milliseconds;
using std::chrono::sys_time;

TEST(Timestamp, IsIso8601WithZ) {
  EXPECT_EQ(FormatTimestamp(sys_time<milliseconds>(milliseconds(1767225600250))),
            "2026-01-01T00:00:00.250Z");
  EXPECT_EQ(FormatTimestamp(sys_time<milliseconds>(milliseconds(0))), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatTimestamp(sys_time<milliseconds>(milliseconds(-1))), "1969-12-31T23:59:59.999Z");
}

// Case 55: neither the zone nor the hour that a zone skips or repeats matters.
TEST(Timestamp, DoesNotSeeTheTimeZone) {
  for (const char* zone : {"Asia/Kathmandu", "Europe/Berlin", "UTC"}) {
    setenv("TZ", zone, 1);
    tzset();
    const auto time = ParseTimestamp("2026-03-29T02:30:00.000Z");
    ASSERT_TRUE(time.has_value());
    EXPECT_EQ(time->time_since_epoch(), milliseconds(1774751400000));
    EXPECT_EQ(FormatTimestamp(*time), "2026-03-29T02:30:00.000Z");
  }
  unsetenv("TZ");
  tzset();
}

TEST(Timestamp, ReadsWithAndWithoutAFraction) {
  EXPECT_EQ(ParseTimestamp("2026-01-01T00:00:00Z"), ParseTimestamp("2026-01-01T00:00:00.000Z"));
  EXPECT_EQ(FormatTimestamp(*ParseTimestamp("2024-02-29T23:59:59.2Z")), "2024-02-29T23:59:59.200Z");
  EXPECT_EQ(FormatTimestamp(*ParseTimestamp("2024-02-29T23:59:59.123456789Z")),
            "2024-02-29T23:59:59.123Z");
}

TEST(Timestamp, RefusesWhatIsNone) {
  for (const char* text :
       {"", "Z", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00+01:00",
        "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00.1234567890Z", "-026-01-01T00:00:00Z", "2026-01-01T00:00:00ZZ"}) {
    EXPECT_FALSE(ParseTimestamp(text).has_value()) << text;
  }
}

TEST(Timestamp, FarTimesAreCut) {
  EXPECT_EQ(FormatTimestamp(sys_time<milliseconds>::max()), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(FormatTimestamp(sys_time<milliseconds>::min()), "0000-01-01T00:00:00.000Z");
}

}  // namespace
}  // namespace assay
