#include "agent/cell/sentinel.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

Device CardOf(uint64_t gib, int cc_major) {
  Device device;
  device.memory_total_bytes = gib << 30;
  device.cc_major = cc_major;
  return device;
}

Stack TrainStack() {
  Stack stack;
  stack.models = {"resnet50", "vgg16"};
  stack.modes = {"train", "infer"};
  stack.lanes = {"eager", "graph"};
  stack.precisions = {"fp32", "amp-fp16"};
  return stack;
}

TEST(SentinelSpec, IsTheSameForEqualCardsAndFitsItsMemoryClass) {
  const auto h200 = SentinelSpec(CardOf(140, 9), TrainStack());
  ASSERT_TRUE(h200);
  EXPECT_EQ(h200->model, "resnet50");
  EXPECT_EQ(h200->precision, "amp-fp16");
  EXPECT_EQ(h200->batch, 256);
  EXPECT_EQ(h200->stop.min_seconds, h200->stop.max_seconds);
  EXPECT_EQ(SentinelSpec(CardOf(24, 8), TrainStack())->batch, 128);
  EXPECT_EQ(SentinelSpec(CardOf(11, 7), TrainStack())->batch, 64);
  EXPECT_EQ(SentinelSpec(CardOf(4, 7), TrainStack())->batch, 16);
}

TEST(SentinelSpec, ACardWithoutTensorCoresTrainsInFp32) {
  const auto pascal = SentinelSpec(CardOf(11, 6), TrainStack());
  ASSERT_TRUE(pascal);
  EXPECT_EQ(pascal->precision, "fp32");
  EXPECT_EQ(pascal->batch, 32);
}

TEST(SentinelSpec, AStackWithoutTheCellHasNone) {
  Stack stack = TrainStack();
  stack.models = {"vgg16"};
  EXPECT_FALSE(SentinelSpec(CardOf(24, 8), stack));
  stack = TrainStack();
  stack.modes = {"infer"};
  EXPECT_FALSE(SentinelSpec(CardOf(24, 8), stack));
  stack = TrainStack();
  stack.precisions = {"tf32"};
  EXPECT_FALSE(SentinelSpec(CardOf(24, 8), stack));
  stack = TrainStack();
  stack.lanes = {"compile"};
  EXPECT_FALSE(SentinelSpec(CardOf(24, 8), stack));
}

class SentinelBookTest : public testing::Test {
 protected:
  bool Due(bool cold) const { return book_.Due(gpus_, "s", cold, now_); }
  void Note(std::optional<double> throughput, const char* attempt = "01A") {
    book_.Note(gpus_, "s", attempt, throughput, now_);
  }
  const std::vector<std::string> gpus_ = {"GPU-0"};
  SentinelBook book_;
  BootTime now_{seconds(1000)};
};

TEST_F(SentinelBookTest, IsDueFirstThenEveryFifteenMinutesAndWhenTheGpuWentCold) {
  EXPECT_TRUE(Due(false));
  Note(100);
  EXPECT_FALSE(Due(false));
  EXPECT_TRUE(Due(true));
  now_ += minutes(15) - seconds(1);
  EXPECT_FALSE(Due(false));
  now_ += seconds(1);
  EXPECT_TRUE(Due(false));
}

TEST_F(SentinelBookTest, ReadingsAreNumberedUnderTheFirstAttempt) {
  Note(100, "01A");
  Note(101, "01B");
  const auto last = book_.Last(gpus_, "s");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->series, "01A");
  EXPECT_EQ(last->index, 2);
  EXPECT_EQ(last->throughput, 101);
  EXPECT_FALSE(book_.Last(gpus_, "other"));
  EXPECT_FALSE(book_.Last({"GPU-0", "GPU-1"}, "s"));
}

TEST_F(SentinelBookTest, OneThatFailedLeavesNothingToCompareAndIsNotTriedAtEachCell) {
  Note(100);
  Note(std::nullopt);
  EXPECT_FALSE(book_.Last(gpus_, "s"));
  EXPECT_FALSE(Due(true));
  now_ += kSentinelPeriod;
  EXPECT_TRUE(Due(false));
  Note(99);
  EXPECT_EQ(book_.Last(gpus_, "s")->index, 2);
}

}  // namespace
}  // namespace assay
