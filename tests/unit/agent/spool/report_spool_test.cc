#include "agent/spool/report_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class ReportSpoolTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + "assay_spool_" + std::to_string(::getpid());
    fs::remove_all(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }
  ReportSpool Open() { return ReportSpool::Open(dir_).value(); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << text;
  }
  std::string dir_;
};

TEST_F(ReportSpoolTest, ReadsBackWhatWasPutInOrderOfTheIds) {
  const std::string bytes("\0\n\xff binary", 10);
  ASSERT_TRUE(Open().Put("01B", bytes).ok());
  ASSERT_TRUE(Open().Put("01A", "").ok());
  const ReportSpool again = Open();
  EXPECT_THAT(again.Attempts(), ElementsAre("01A", "01B"));
  EXPECT_EQ(*again.Find("01B"), bytes);
  EXPECT_EQ(*again.Find("01A"), "");
}

TEST_F(ReportSpoolTest, ForgetsWhatWasAcknowledged) {
  ReportSpool spool = Open();
  ASSERT_TRUE(spool.Put("01A", "x").ok());
  spool.Remove("01A");
  spool.Remove("01A");
  EXPECT_EQ(spool.Find("01A"), nullptr);
  EXPECT_THAT(Open().Attempts(), IsEmpty());
}

TEST_F(ReportSpoolTest, SetsACutFileAsideAndKeepsTheOthers) {
  ASSERT_TRUE(Open().Put("01A", "a report of some length").ok());
  ASSERT_TRUE(Open().Put("01B", "another").ok());
  fs::resize_file(dir_ + "/01A.pb", fs::file_size(dir_ + "/01A.pb") - 1);
  EXPECT_THAT(Open().Attempts(), ElementsAre("01B"));
  EXPECT_TRUE(fs::exists(dir_ + "/01A.broken"));
  EXPECT_FALSE(fs::exists(dir_ + "/01A.pb"));
}

TEST_F(ReportSpoolTest, SetsEmptyForeignAndChangedFilesAside) {
  ASSERT_TRUE(Open().Put("01C", "report").ok());
  std::string text;
  std::getline(std::ifstream(dir_ + "/01C.pb"), text, '\0');
  text.back() ^= 1;
  Write("01C.pb", text);
  Write("01D.pb", "");
  Write("01E.pb", "no header at all");
  fs::create_directory(dir_ + "/01F.pb");
  EXPECT_THAT(Open().Attempts(), IsEmpty());
  EXPECT_TRUE(fs::exists(dir_ + "/01C.broken"));
  EXPECT_TRUE(fs::exists(dir_ + "/01E.broken"));
}

TEST_F(ReportSpoolTest, LeavesTheTemporaryFileOfAKilledAgentAlone) {
  (void)Open();
  Write("01A.pb.tmp", "half a rep");
  EXPECT_THAT(Open().Attempts(), IsEmpty());
}

TEST_F(ReportSpoolTest, RefusesAnIdThatIsAPath) {
  ReportSpool spool = Open();
  EXPECT_EQ(spool.Put("../x", "r").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(spool.Put("", "r").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ReportSpoolTest, KeepsAReportInMemoryWhenTheDiskRefusesIt) {
  ReportSpool spool = Open();
  fs::remove_all(dir_);
  std::ofstream(dir_) << "a file where the folder was";
  EXPECT_FALSE(spool.Put("01A", "x").ok());
  EXPECT_EQ(*spool.Find("01A"), "x");
}

}  // namespace
}  // namespace assay
