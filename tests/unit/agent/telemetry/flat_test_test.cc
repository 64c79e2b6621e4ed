#include "agent/telemetry/flat_test.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr BootTime kOrigin{seconds(5000)};

// Ten readings a second from `from` to `to` seconds.
template <class Celsius, class Hertz>
void Feed(FlatTest& test, double from, double to, Celsius celsius, Hertz hertz) {
  for (double at = from; at <= to + 1e-9; at += 0.1) {
    test.Add(kOrigin + milliseconds(static_cast<int64_t>(std::llround(at * 1e3))), celsius(at),
             hertz(at));
  }
}

double Steady(double) { return 1.4e9; }
// A card of that time constant, in whole degrees as NVML gives them.
auto Warming(double seconds, double by = 40) {
  return [=](double at) { return std::round(30 + by * (1 - std::exp(-at / seconds))); };
}

TEST(FlatTest, ACardAtRestIsFlatAfterOneWholeWindow) {
  FlatTest test;
  Feed(test, 0, 29.8, [](double) { return 65; }, Steady);
  EXPECT_FALSE(test.Flat());
  Feed(test, 29.9, 30.0, [](double) { return 65; }, Steady);
  EXPECT_TRUE(test.Flat());
  EXPECT_NEAR(*test.celsius_per_second(), 0, 1e-12);
}

TEST(FlatTest, ACardThatWarmsIsFlatOnlyNearItsEnd) {
  FlatTest test;
  const auto celsius = Warming(60);
  double flat_at = 0;
  for (double at = 0; at < 600 && flat_at == 0; at += 0.1) {
    Feed(test, at, at, celsius, Steady);
    if (test.Flat()) flat_at = at;
  }
  ASSERT_GT(flat_at, 0);
  const double left = 40 * std::exp(-flat_at / 60);
  EXPECT_LT(left, 3.5) << "at " << flat_at << " s";
  EXPECT_GT(flat_at, 120);
}

TEST(FlatTest, AClockThatStillFallsIsNotFlat) {
  FlatTest test;
  const auto hot = [](double) { return 70; };
  Feed(test, 0, 40, hot, [](double at) { return 1.4e9 * (1 - 0.0005 * at); });  // 1.5 % in 30 s
  EXPECT_FALSE(test.Flat());
  FlatTest slower;
  Feed(slower, 0, 40, hot, [](double at) { return 1.4e9 * (1 - 0.0002 * at); });  // 0.6 %
  EXPECT_TRUE(slower.Flat());
}

TEST(FlatTest, AClockThatJumpsAboutItsMeanIsFlat) {
  FlatTest test;
  Feed(
      test, 0, 40, [](double at) { return std::fmod(at, 2) < 1 ? 69 : 70; },
      [](double at) { return std::fmod(at, 0.4) < 0.2 ? 1.38e9 : 1.42e9; });
  EXPECT_TRUE(test.Flat());
}

TEST(FlatTest, ADegreeInTheMiddleOfTheWindowIsNotFlat) {
  FlatTest test;
  Feed(test, 0, 30, [](double at) { return at < 15 ? 65 : 66; }, Steady);
  EXPECT_FALSE(test.Flat());
  EXPECT_NEAR(*test.celsius_per_second(), 1.5 / 30, 0.002);
}

TEST(FlatTest, CoolingIsNotFlatEither) {
  FlatTest test;
  Feed(test, 0, 60, [](double at) { return std::round(80 - at / 10); }, Steady);
  EXPECT_FALSE(test.Flat());
}

TEST(FlatTest, AFewReadingsAreNoWindow) {
  FlatTest test;
  for (int at = 0; at <= 40; at += 2) test.Add(kOrigin + seconds(at), 65, 1.4e9);
  EXPECT_FALSE(test.Flat());
}

TEST(FlatTest, RestartForgets) {
  FlatTest test;
  Feed(test, 0, 31, [](double) { return 65; }, Steady);
  ASSERT_TRUE(test.Flat());
  test.Restart();
  EXPECT_FALSE(test.Flat());
  EXPECT_FALSE(test.celsius_per_second());
}

}  // namespace
}  // namespace assay
