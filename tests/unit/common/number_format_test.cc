#include "common/text/number_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

namespace assay {
namespace {

TEST(HumanNumber, KeepsFourSignificantDigits) {
  EXPECT_EQ(HumanNumber(812.53), "812.5");
  EXPECT_EQ(HumanNumber(1.8342), "1.834");
  EXPECT_EQ(HumanNumber(14.0), "14.00");
  EXPECT_EQ(HumanNumber(0.012345), "0.01235");
}

TEST(HumanNumber, NeverCutsTheWholePart) {
  EXPECT_EQ(HumanNumber(6124), "6,124");
  EXPECT_EQ(HumanNumber(14710.3), "14,710");
  EXPECT_EQ(HumanNumber(12668618460.0), "12,668,618,460");
  EXPECT_EQ(HumanNumber(-6124.4), "-6,124");
}

TEST(HumanNumber, RoundingUpToTheNextPowerLosesNoDigit) {
  EXPECT_EQ(HumanNumber(999.96), "1,000");
  EXPECT_EQ(HumanNumber(9.9996), "10.00");
  EXPECT_EQ(HumanNumber(99.94), "99.94");
}

TEST(HumanNumber, ExtremesUseExponents) {
  EXPECT_EQ(HumanNumber(1.2345e-5), "1.234e-05");
  EXPECT_EQ(HumanNumber(2.5e20), "2.500e+20");
  EXPECT_EQ(HumanNumber(0), "0");
}

TEST(HumanNumber, NotFiniteIsADash) {
  EXPECT_EQ(HumanNumber(NAN), "-");
  EXPECT_EQ(HumanNumber(INFINITY), "-");
}

TEST(HumanInteger, GroupsThousands) {
  EXPECT_EQ(HumanInteger(0), "0");
  EXPECT_EQ(HumanInteger(999), "999");
  EXPECT_EQ(HumanInteger(25557032), "25,557,032");
  EXPECT_EQ(HumanInteger(-1000), "-1,000");
  EXPECT_EQ(HumanInteger(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(HumanBytes, UsesPowersOf1024) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1024), "1.00 KiB");
  EXPECT_EQ(HumanBytes(1610612736), "1.50 GiB");
  EXPECT_EQ(HumanBytes(int64_t{139} << 30), "139 GiB");
  EXPECT_EQ(HumanBytes((int64_t{1} << 30) - 1), "1.00 GiB");
  EXPECT_EQ(HumanBytes(std::numeric_limits<int64_t>::max()), "8.00 EiB");
  EXPECT_EQ(HumanBytes(-1), "-");
}

TEST(HumanPercent, KeepsTwoSignificantDigits) {
  EXPECT_EQ(HumanPercent(0.0123), "1.2 %");
  EXPECT_EQ(HumanPercent(0.9), "90 %");
  EXPECT_EQ(HumanPercent(1), "100 %");
  EXPECT_EQ(HumanPercent(0.00012), "0.01 %");
  EXPECT_EQ(HumanPercent(0), "0 %");
  EXPECT_EQ(HumanPercent(NAN), "-");
}

TEST(HumanDuration, PicksTheUnit) {
  EXPECT_EQ(HumanDuration(0.85), "0.85 s");
  EXPECT_EQ(HumanDuration(12.4), "12 s");
  EXPECT_EQ(HumanDuration(59.6), "1 min 00 s");
  EXPECT_EQ(HumanDuration(185), "3 min 05 s");
  EXPECT_EQ(HumanDuration(2 * 3600 + 7 * 60 + 59), "2 h 07 min");
  EXPECT_EQ(HumanDuration(3 * 86400 + 4 * 3600), "3 d 04 h");
  EXPECT_EQ(HumanDuration(-1), "-");
  EXPECT_EQ(HumanDuration(INFINITY), "-");
}

TEST(HumanTimeLeft, RoundsUp) {
  EXPECT_EQ(HumanTimeLeft(0), "under 5 s");
  EXPECT_EQ(HumanTimeLeft(11), "15 s");
  EXPECT_EQ(HumanTimeLeft(60), "1 min");
  EXPECT_EQ(HumanTimeLeft(76), "1 min 20 s");
  EXPECT_EQ(HumanTimeLeft(24 * 60 + 1), "25 min");
  EXPECT_EQ(HumanTimeLeft(2 * 3600 + 10 * 60), "2 h 10 min");
  EXPECT_EQ(HumanTimeLeft(-1), "-");
  EXPECT_EQ(HumanTimeLeft(NAN), "-");
}

TEST(Counted, OneIsNoPlural) {
  EXPECT_EQ(Counted(0, "cell"), "0 cells");
  EXPECT_EQ(Counted(1, "cell"), "1 cell");
  EXPECT_EQ(Counted(1440, "cell"), "1440 cells");
}

TEST(ShortestNumber, ReadsBackEqual) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random();
    double value = 0;
    static_assert(sizeof(value) == sizeof(bits));
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(std::strtod(ShortestNumber(value).c_str(), nullptr), value);
  }
  EXPECT_EQ(ShortestNumber(0.1), "0.1");
  EXPECT_EQ(ShortestNumber(6124), "6124");
}

}  // namespace
}  // namespace assay
