#include "common/doctor/doctor_report.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(DoctorReport, ReadsBackWhatItWrote) {
  DoctorReport report{"n1",
                      "0.1.0",
                      {{"disk", CheckState::kBad, "no \"room\"\n", "rm -r x"},
                       {"clock", CheckState::kOk, "good", ""}}};
  const auto again = ParseDoctorJson(WriteDoctorJson(report));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->node, "n1");
  EXPECT_EQ(again->version, "0.1.0");
  ASSERT_EQ(again->checks.size(), 2u);
  EXPECT_EQ(again->checks[0].name, "disk");
  EXPECT_EQ(again->checks[0].state, CheckState::kBad);
  EXPECT_EQ(again->checks[0].finding, "no \"room\"\n");
  EXPECT_EQ(again->checks[0].remedy, "rm -r x");
  EXPECT_EQ(again->Worst(), CheckState::kBad);
}

TEST(DoctorReport, UnknownIsWorseThanOkAndBetterThanAWarning) {
  DoctorReport report;
  EXPECT_EQ(report.Worst(), CheckState::kOk);
  report.checks.push_back({"a", CheckState::kUnknown, "", ""});
  EXPECT_EQ(report.Worst(), CheckState::kUnknown);
  report.checks.push_back({"b", CheckState::kWarning, "", ""});
  EXPECT_EQ(report.Worst(), CheckState::kWarning);
}

TEST(DoctorReport, WhatIsNoReportIsOneSentence) {
  for (const char* text : {"", "[]", "{", "{}", R"({"checks":3})", "null", "\xff"}) {
    EXPECT_EQ(ParseDoctorJson(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(DoctorReport, OddPartsOfAReportAreTakenAsTheyCanBe) {
  const auto report = ParseDoctorJson(
      R"({"node":7,"checks":[3,{},{"name":"x","state":"splendid","finding":null,"remedy":[]}]})");
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->node, "");
  ASSERT_EQ(report->checks.size(), 2u);
  EXPECT_EQ(report->checks[1].name, "x");
  EXPECT_EQ(report->checks[1].state, CheckState::kUnknown);
}

TEST(DoctorReport, TooManyChecksAndTooLongTextsAreCut) {
  DoctorReport report;
  report.checks.assign(kMostDoctorChecks + 5, {"n", CheckState::kOk, std::string(9000, 'x'), ""});
  const auto cut = ParseDoctorJson(WriteDoctorJson(report));
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->checks.size(), kMostDoctorChecks);
  EXPECT_EQ(cut->checks[0].finding.size(), kMostDoctorTextBytes);
}

TEST(DoctorReport, BytesThatAreNoTextDoNotStopTheWriting) {
  const DoctorReport report{"n\xff", "", {{"x", CheckState::kOk, "\xc3", ""}}};
  EXPECT_TRUE(ParseDoctorJson(WriteDoctorJson(report)).ok());
}

}  // namespace
}  // namespace assay
