#include "cli/result_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "common/text/utf8.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Record Cell(int64_t cell, const std::string& card, const std::string& batch, int64_t repeat) {
  Record record;
  (void)record.Set(Field::kCell, cell);
  record.SetText(Field::kKey, "key" + batch);
  record.SetText(Field::kModel, "resnet50");
  record.SetText(Field::kMode, "train");
  record.SetText(Field::kPrecision, "amp-fp16");
  record.SetText(Field::kBatch, batch);
  record.SetText(Field::kLane, "eager");
  record.SetText(Field::kCard, card);
  record.SetText(Field::kTarget, card);
  (void)record.Set(Field::kRepeat, repeat);
  return record;
}

Record Ok(int64_t cell, const std::string& card, const std::string& batch, int64_t repeat,
          double throughput) {
  Record record = Cell(cell, card, batch, repeat);
  record.SetText(Field::kOutcome, "ok");
  (void)record.Set(Field::kThroughput, throughput);
  record.SetText(Field::kUnit, "img/s");
  (void)record.Set(Field::kDeviceUsedBytes, int64_t{10} << 30);
  (void)record.Set(Field::kSteps, int64_t{100});
  (void)record.Set(Field::kSamples, int64_t{6400});
  return record;
}

Record Ended(int64_t cell, const std::string& card, const std::string& batch,
             const std::string& outcome, const std::string& reason) {
  Record record = Cell(cell, card, batch, 1);
  record.SetText(Field::kOutcome, outcome);
  record.SetText(Field::kReason, reason);
  return record;
}

TEST(ResultTable, ShowsThroughputIntervalMemoryAndRatioToTheFirstRow) {
  const std::string text = ResultTable(
      std::vector<Record>{Ok(1, "RTX 2080 Ti", "64", 1, 400), Ok(2, "RTX 2080 Ti", "64", 2, 404),
                          Ok(3, "RTX 3090", "64", 1, 800), Ok(4, "RTX 3090", "64", 2, 808)},
      100, false);
  for (const char* part : {"402", "804", "±", "10.0 GiB", "2.00", "1.00", "img/s", "RTX 3090"}) {
    EXPECT_THAT(text, HasSubstr(part)) << text;
  }
}

// Case 45: no magic numbers; what failed is a word.
TEST(ResultTable, FailuresAreWordsAndNeverNumbers) {
  const std::string text =
      ResultTable(std::vector<Record>{Ok(1, "RTX 3090", "64", 1, 800),
                                      Ended(2, "RTX 3090", "9999", "mem_limit", "out_of_memory"),
                                      Ended(3, "RTX 3090", "128", "fail", "crash"),
                                      Cell(4, "RTX 3090", "32", 1)},
                  100, false);
  EXPECT_THAT(text, HasSubstr("mem_limit"));
  EXPECT_THAT(text, HasSubstr("fail: crash"));
  EXPECT_THAT(text, HasSubstr("pending"));
  EXPECT_THAT(text, Not(HasSubstr("-1")));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr(" 0 ")));
  EXPECT_THAT(text, Not(HasSubstr("0.00")));
}

TEST(ResultTable, SaysHowManyAreInvalidBesideAFigureOfTheOthers) {
  Record invalid = Ok(3, "RTX 3090", "64", 3, 900);
  (void)invalid.Set(Field::kSteps, int64_t{0});
  const std::vector<Record> records = {Ok(1, "RTX 3090", "64", 1, 800),
                                       Ok(2, "RTX 3090", "64", 2, 800), invalid};
  EXPECT_THAT(ResultTable(records, 100, false), HasSubstr("ok (1 invalid)"));
  EXPECT_THAT(ResultTable({&records[2], 1}, 100, false), HasSubstr("ok invalid"));
}

TEST(ResultTable, ASmallRatioIsNoZeroAndALargeOneIsShort) {
  const std::string text =
      ResultTable(std::vector<Record>{Ok(1, "A", "64", 1, 1000), Ok(2, "B", "64", 1, 4),
                                      Ok(3, "C", "64", 1, 1e300)},
                  200, false);
  EXPECT_THAT(text, Not(HasSubstr("0.00 "))) << text;
  EXPECT_THAT(text, HasSubstr("0.0040")) << text;
  EXPECT_THAT(text, Not(HasSubstr("0000000000"))) << text;
}

// Against itself each row would be 1.00.
TEST(ResultTable, WhereTheBaselineAloneWasMeasuredRatiosAreToTheFirstRow) {
  const std::vector<Record> records = {Ok(1, "H200", "64", 1, 100), Ok(2, "H200", "128", 1, 300)};
  EXPECT_EQ(ResultTable(records, 100, false, "H200"), ResultTable(records, 100, false));
  EXPECT_THAT(ResultTable(records, 100, false, "H200"), HasSubstr("3.00"));
}

TEST(ResultTable, WithABaselineALineSaysWhatRatiosAreToAndWhichAreMissing) {
  std::vector<Record> records = {Ok(1, "H200", "64", 1, 300), Ok(2, "V100", "64", 1, 100)};
  const std::string text = ResultTable(records, 100, false, "V100");
  EXPECT_THAT(text, HasSubstr("3.00"));
  EXPECT_THAT(text, HasSubstr("\nratios to V100, same axes and stack\n"));
  records.push_back(Ok(3, "H200", "128", 1, 600));
  EXPECT_THAT(ResultTable(records, 100, false, "V100"),
              HasSubstr("same axes and stack; 1 row without: it has no such valid row\n"));
  EXPECT_THAT(ResultTable(records, 100, false, "RTX 3090"),
              HasSubstr("no ratios: baseline RTX 3090 has no valid row\n"));
  EXPECT_THAT(ResultTable(records, 100, false), Not(HasSubstr("ratios")));
}

TEST(ResultTable, NoCellsIsAWord) { EXPECT_EQ(ResultTable({}, 100, false), "no cells\n"); }

// Case 12: any name a driver may give, in a table that still fits.
TEST(ResultTable, FitsAndAlignsWithOddCardNames) {
  std::vector<Record> records;
  int64_t cell = 1;
  for (const std::string& name :
       {std::string("NVIDIA Graphics Device"), std::string("GRID V100DX-16Q"),
        std::string("GeForce RTX 2080 Super with Max-Q Design"), std::string(),
        std::string(96, 'x'), std::string("a \"quoted\", name\nwith — dash"),
        std::string("broken \xFF byte"), std::string("\x1B[31mred"), std::string("測試卡")}) {
    records.push_back(Ok(cell, name, "64", 1, 100.0 + static_cast<double>(cell)));
    ++cell;
  }
  for (const size_t width : {60u, 80u, 100u, 160u}) {
    const std::string text = ResultTable(records, width, false);
    EXPECT_TRUE(IsUtf8(text));
    EXPECT_EQ(text.find('\x1B'), std::string::npos);
    std::istringstream lines(text);
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_LE(DisplayWidth(line), width) << line;
    }
    EXPECT_GE(count, records.size() + 1);
  }
}

TEST(CellLabel, SaysWhichCell) {
  EXPECT_EQ(CellLabel(Cell(7, "RTX 3090", "64", 2)),
            "resnet50 train amp-fp16 b64 eager RTX 3090 repeat 2");
}

TEST(RecordText, GroupsKnownFieldsWithUnits) {
  Record record = Ok(7, "RTX 3090", "64", 2, 812.5);
  (void)record.Set(Field::kStepP50Ms, 78.7);
  (void)record.Set(Field::kPowerMeanWatts, 348.2);
  (void)record.Set(Field::kSmClockMeanHertz, 1.41e9);
  (void)record.Set(Field::kThrottleRatio, 0.012);
  const std::string text = RecordText(record);
  for (const char* part : {"measurement", "memory", "812.5 img/s", "78.70 ms", "348.2 W",
                           "1,410 MHz", "1.2 %", "10.0 GiB"}) {
    EXPECT_THAT(text, HasSubstr(part)) << text;
  }
  EXPECT_THAT(text, Not(HasSubstr("step_p99_ms")));
}

// Case 53: what is no number is not known.
TEST(RecordText, NotANumberIsLeftOut) {
  Record record = Cell(1, "RTX 3090", "64", 1);
  (void)record.Set(Field::kThroughput, std::numeric_limits<double>::quiet_NaN());
  (void)record.Set(Field::kStepP50Ms, std::numeric_limits<double>::infinity());
  const std::string text = RecordText(record);
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("inf")));
  EXPECT_THAT(text, Not(HasSubstr("throughput")));
}

}  // namespace
}  // namespace assay::cli
