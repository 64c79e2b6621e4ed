#include "cli/doctor_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "common/text/utf8.h"

namespace assay::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

DoctorReport SomeReport() {
  return {
      "n1",
      "0.1.0",
      {{"driver", CheckState::kOk, "580.65.06, NVML and kernel module agree", ""},
       {"clock", CheckState::kWarning, "not synchronised by NTP", "sudo timedatectl set-ntp true"},
       {"mpirun", CheckState::kUnknown, "not asked", ""},
       {"disk", CheckState::kBad,
        "120 MiB free for the state directory, less than 200 MiB, and so many more words that "
        "they need a second line",
        "df -h /var/lib/assay"},
       {"ports", CheckState::kWarning, "few", ""}}};
}

TEST(DoctorTable, IsWorstFirstAndKeepsTheOrderWithinAState) {
  const std::string table = DoctorTable(SomeReport(), 80, false);
  std::vector<size_t> places;
  for (const char* name : {"disk ", "clock ", "ports ", "mpirun ", "driver "}) {
    places.push_back(table.find(name));
    ASSERT_NE(places.back(), std::string::npos) << name;
  }
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end())) << table;
}

TEST(DoctorTable, EndsInTheCounts) {
  EXPECT_THAT(DoctorTable(SomeReport(), 80, false),
              testing::EndsWith("\nn1: 1 bad, 2 warning, 1 unknown, 1 ok\n"));
}

TEST(DoctorTable, FitsTheWidthAndStandsInColumns) {
  std::istringstream lines(DoctorTable(SomeReport(), 60, false));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(DisplayWidth(line), 60u) << line;
  EXPECT_THAT(DoctorTable(SomeReport(), 60, false),
              HasSubstr("bad      disk    120 MiB free for the state directory, less\n"
                        "                 than 200 MiB,"));
}

TEST(DoctorTable, WhatToChangeIsASentenceInTheColumn) {
  DoctorReport report = SomeReport();
  report.checks[3].remedy = "write hello before anything else, with the device's uuid";
  EXPECT_THAT(DoctorTable(report, 60, false, RemedyKind::kSentence),
              HasSubstr("\n                 change: write hello before anything else,"
                        "\n                 with the device's uuid\n"));
}

TEST(DoctorTable, WhatToTypeIsWholeOnOneLine) {
  DoctorReport report = SomeReport();
  EXPECT_THAT(DoctorTable(report, 60, false),
              HasSubstr("\n                 type: df -h /var/lib/assay\n"));
  report.checks[3].remedy = "sudo mount -o remount,size=8G /dev/shm && sudo sysctl -w something=1";
  EXPECT_THAT(DoctorTable(report, 60, false),
              HasSubstr("\n         type: " + report.checks[3].remedy + "\n"));
}

TEST(DoctorTable, ALongNameHasALineOfItsOwn) {
  const DoctorReport report{
      "n1", "", {{"stack " + std::string(40, 's'), CheckState::kOk, "fine", ""}}};
  EXPECT_THAT(DoctorTable(report, 80, false),
              HasSubstr("stack " + std::string(40, 's') + "\n           fine\n"));
}

TEST(DoctorTable, AWordThatIsTooLongIsBrokenAndNotCut) {
  const DoctorReport report{"n1", "", {{"x", CheckState::kOk, std::string(200, 'p'), ""}}};
  const std::string table = DoctorTable(report, 60, false);
  EXPECT_EQ(std::count(table.begin(), table.end(), 'p'), 200);
}

// Case 46: what a peer or a file said does not act on the terminal.
TEST(DoctorTable, ControlBytesOfAPeerDoNotReachTheTerminal) {
  const DoctorReport report{
      "n\x1b]0;x\x07"
      "1",
      "",
      {{"na\x1b[2Jme", CheckState::kBad,
        "find\r\ning \x9b"
        "31m \xff",
        "rm\x1b[1m x\n; evil"}}};
  const std::string table = DoctorTable(report, 80, false);
  EXPECT_THAT(table, Not(HasSubstr("\x1b")));
  EXPECT_THAT(table, Not(HasSubstr("\r")));
  EXPECT_THAT(table, Not(HasSubstr("\x07")));
  EXPECT_TRUE(IsUtf8(table));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
}

TEST(DoctorTable, AnEmptyReportSaysSo) {
  EXPECT_EQ(DoctorTable({}, 80, false), "this node: nothing was checked\n");
}

TEST(DoctorTable, ColourIsThereOnlyWhereItIsWanted) {
  EXPECT_THAT(DoctorTable(SomeReport(), 80, true), HasSubstr("\x1b[31mbad"));
  EXPECT_THAT(DoctorTable(SomeReport(), 80, false), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace assay::cli
