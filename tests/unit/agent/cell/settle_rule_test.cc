#include "agent/cell/settle_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class SettleRuleTest : public testing::Test {
 protected:
  SettleStep Look() {
    load_.last_sign = silent_since_.value_or(clock_.Now());
    return rule_.Look(clock_.Now(), heat_, load_);
  }
  void Load() {
    heat_.sensors = HeatReading::Sensors::kThere;
    heat_.celsius = 30;
    ASSERT_EQ(Look(), SettleStep::kStartLoad);
  }
  void Measuring() {
    load_.measuring = true;
    ASSERT_EQ(Look(), SettleStep::kLoadBegan);
  }

  FakeClock clock_;
  HeatReading heat_;
  SettleLoad load_;
  std::optional<BootTime> silent_since_;
  SettleRule rule_{seconds(120), clock_.Now()};
};

TEST_F(SettleRuleTest, EndsWhenTheLoadedCardIsFlat) {
  Load();
  // Flat, because it is idle while its runner loads libraries.
  heat_.flat = true;
  EXPECT_EQ(Look(), SettleStep::kWait);
  clock_.Advance(seconds(12));
  Measuring();
  heat_.flat = false;
  clock_.Advance(seconds(60));
  EXPECT_EQ(Look(), SettleStep::kWait);
  heat_.flat = true;
  heat_.celsius = 65;
  heat_.celsius_per_second = 0.02;
  EXPECT_EQ(Look(), SettleStep::kEnd);
  EXPECT_TRUE(rule_.result().done);
  EXPECT_EQ(rule_.result().seconds, 72);
  EXPECT_EQ(rule_.result().begin_celsius, 30);
  EXPECT_EQ(rule_.result().end_celsius, 65);
  EXPECT_EQ(rule_.result().celsius_per_second, 0.02);
}

TEST_F(SettleRuleTest, GivesUpAtTheCapAndNotBefore) {
  Load();
  Measuring();
  clock_.Advance(kSettleCap - seconds(1));
  EXPECT_EQ(Look(), SettleStep::kWait);
  clock_.Advance(seconds(1));
  EXPECT_EQ(Look(), SettleStep::kEnd);
  EXPECT_FALSE(rule_.result().done);
  EXPECT_TRUE(rule_.result().hopeless);
  EXPECT_THAT(rule_.result().why, HasSubstr("600 s"));
}

TEST_F(SettleRuleTest, ACardWithoutAThermometerIsNotLoaded) {
  heat_.sensors = HeatReading::Sensors::kMissing;
  EXPECT_EQ(Look(), SettleStep::kEnd);
  EXPECT_TRUE(rule_.result().applies);
  EXPECT_FALSE(rule_.result().done);
  EXPECT_TRUE(rule_.result().hopeless);
  EXPECT_EQ(rule_.result().seconds, 0);
}

TEST_F(SettleRuleTest, SensorsThatNeverAnswerAreWaitedForAWhile) {
  EXPECT_EQ(Look(), SettleStep::kWait);
  clock_.Advance(kSensorWait);
  EXPECT_EQ(Look(), SettleStep::kEnd);
  EXPECT_THAT(rule_.result().why, HasSubstr("do not answer"));
}

TEST_F(SettleRuleTest, ALoadThatLeavesOrIsSilentEndsItAndMayBeTriedAgain) {
  Load();
  load_.gone = true;
  EXPECT_EQ(Look(), SettleStep::kEnd);
  EXPECT_FALSE(rule_.result().hopeless);
  EXPECT_FALSE(rule_.result().done);
}

TEST_F(SettleRuleTest, ALoadThatIsSilentForAsLongAsACellMayBeEndsIt) {
  Load();
  silent_since_ = clock_.Now();
  clock_.Advance(seconds(119));
  EXPECT_EQ(Look(), SettleStep::kWait);
  clock_.Advance(seconds(1));
  EXPECT_EQ(Look(), SettleStep::kEnd);
  EXPECT_FALSE(rule_.result().hopeless);
  EXPECT_EQ(Look(), SettleStep::kEnd);
}

}  // namespace
}  // namespace assay
