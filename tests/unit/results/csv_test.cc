#include "common/results/csv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace assay {
namespace {

// A reader by RFC 4180 of its own, so that the writer is not tested by itself.
std::vector<std::vector<std::string>> ReadCsv(const std::string& csv) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (size_t i = 0; i < csv.size(); ++i) {
    std::string& cell = rows.back().back();
    const char c = csv[i];
    if (quoted) {
      if (c != '"') {
        cell += c;
      } else if (i + 1 < csv.size() && csv[i + 1] == '"') {
        cell += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      rows.back().emplace_back();
    } else if (c == '\r' && i + 1 < csv.size() && csv[i + 1] == '\n') {
      rows.emplace_back(1);
      ++i;
    } else {
      cell += c;
    }
  }
  rows.pop_back();  // after the last line end
  return rows;
}

TEST(ResultsCsv, HasEveryFieldAsAColumnInOrder) {
  const auto rows = ReadCsv(WriteResultsCsv({}));
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0].size(), kFieldCount);
  for (size_t i = 0; i < kFieldCount; ++i) EXPECT_EQ(rows[0][i], AllFields()[i].name);
}

// Case 37: what a card does not say is an empty cell, neither 0 nor N/A.
TEST(ResultsCsv, NotKnownIsEmpty) {
  Record record;
  ASSERT_TRUE(record.Set(Field::kPowerMeanWatts, NAN).ok());
  const auto rows = ReadCsv(WriteResultsCsv(std::vector<Record>{record}));
  ASSERT_EQ(rows.size(), 2u);
  ASSERT_EQ(rows[1].size(), kFieldCount);
  for (const std::string& cell : rows[1]) EXPECT_EQ(cell, "");
}

TEST(ResultsCsv, WritesEachTypePlainly) {
  Record record;
  record.SetText(Field::kModel, "resnet50");
  ASSERT_TRUE(record.Set(Field::kSteps, int64_t{1234567}).ok());
  ASSERT_TRUE(record.Set(Field::kThroughput, 6124.25).ok());
  ASSERT_TRUE(record.Set(Field::kSimulated, false).ok());
  ASSERT_TRUE(record.SetList(Field::kGpuUuids, std::vector<std::string>{"GPU-1", "GPU-2"}).ok());
  const Field fields[] = {Field::kModel, Field::kSteps, Field::kThroughput, Field::kSimulated,
                          Field::kGpuUuids};
  EXPECT_EQ(WriteCsv(std::vector<Record>{record}, fields),
            "model,steps,throughput,simulated,gpu_uuids\r\n"
            "resnet50,1234567,6124.25,false,GPU-1;GPU-2\r\n");
}

// Cases 12 and 53.
TEST(ResultsCsv, OddTextsComeBack) {
  for (const std::string text : {"a \"quote\"", "a, comma", "two\nlines", "two\r\nlines",
                                 "\xE2\x80\x94", "\"", ",", " x "}) {
    Record record;
    record.SetText(Field::kCard, text);
    const auto rows = ReadCsv(WriteResultsCsv(std::vector<Record>{record}));
    ASSERT_EQ(rows.size(), 2u) << text;
    ASSERT_EQ(rows[1].size(), kFieldCount) << text;
    EXPECT_EQ(rows[1][static_cast<size_t>(Field::kCard)], text);
  }
  EXPECT_EQ(CsvCell("RTX\xFF"), "RTX\xEF\xBF\xBD");
}

}  // namespace
}  // namespace assay
