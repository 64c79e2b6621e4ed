#include "coordinator/store/row_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/coordinator/store/rows_for_tests.h"

namespace assay {
namespace {

TEST(RowJsonTest, EveryRowReadsBackAsItWasWritten) {
  const AttemptRow attempt = MakeAttempt(kRunA, 7, "a1");
  EXPECT_EQ(AttemptJson(AttemptFromJson(AttemptJson(attempt)).value()), AttemptJson(attempt));
  EXPECT_EQ(AttemptFromJson(AttemptJson(attempt))->record, attempt.record);
  const CellRow cell = EndedCell(MakeCell(kRunA, 7), Outcome::kHung, "a1");
  EXPECT_EQ(CellJson(CellFromJson(CellJson(cell)).value()), CellJson(cell));
  const RunRow run = MakeRun(kRunA);
  EXPECT_EQ(RunJson(RunFromJson(RunJson(run)).value()), RunJson(run));
  EXPECT_EQ(SpecJson(SpecFromJsonText(SpecJson(MakeSpec(3))).value()), SpecJson(MakeSpec(3)));
}

TEST(RowJsonTest, LabelsOfAFileAreCheckedAsThoseOfAUser) {
  EXPECT_EQ(RunFromJson(R"({"state":"done","labels":{"a":"b"}})")->labels, (Labels{{"a", "b"}}));
  for (const char* text :
       {R"({"state":"done","labels":{"A":"b"}})", R"({"state":"done","labels":{"a":"\u001b[2J"}})",
        R"({"state":"done","labels":{"a":1}})", R"({"state":"done","labels":["a"]})"}) {
    EXPECT_EQ(RunFromJson(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

// Case 53: NaN, infinity and broken bytes.
TEST(RowJsonTest, BrokenBytesBecomeReplacementCharactersAndReadBack) {
  AttemptRow attempt = MakeAttempt(kRunA, 7, "a1");
  attempt.message = "bad \xFF byte";
  attempt.log_tail = std::string("zero \0 byte", 11);
  attempt.seconds = std::numeric_limits<double>::quiet_NaN();
  const auto read = AttemptFromJson(AttemptJson(attempt));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->message, "bad \xEF\xBF\xBD byte");
  EXPECT_EQ(read->log_tail, attempt.log_tail);
  EXPECT_EQ(read->seconds, 0);
}

TEST(RowJsonTest, HostileTextIsRefusedNotACrash) {
  const std::string deep(200'000, '[');
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("null"), std::string("{\"id\":1}"),
        std::string("{\"state\":\"done\",\"cells\":-1}"),
        std::string("{\"state\":\"done\",\"cells\":1e999}"),
        std::string("{\"state\":\"done\",\"seed\":18446744073709551615}"),
        std::string("{\"state\":\"eaten\"}"), std::string("{\"state\":\"done\",\"select\":3}"),
        std::string("{\"state\":\"done\",\"select\":{\"cards\":[1]}}"), deep,
        "{\"select\":" + deep}) {
    EXPECT_FALSE(RunFromJson(text).ok()) << text.substr(0, 60);
  }
  EXPECT_FALSE(CellFromJson("{\"outcome\":\"great\"}").ok());
  EXPECT_FALSE(CellFromJson("{\"repeat\":4294967296}").ok());
  EXPECT_FALSE(SpecFromJsonText("{\"batch\":\"many\"}").ok());
  EXPECT_FALSE(AttemptFromJson("{\"members\":{}}").ok());
  EXPECT_FALSE(AttemptFromJson("{\"record\":{\"throughput\":\"fast\"}}").ok());
}

TEST(RowJsonTest, KeysThatANewerVersionAddedAreSkipped) {
  const auto cell = CellFromJson("{\"cell\":3,\"colour\":\"blue\"}");
  ASSERT_TRUE(cell.ok()) << cell.status();
  EXPECT_EQ(cell->cell, 3u);
}

}  // namespace
}  // namespace assay
