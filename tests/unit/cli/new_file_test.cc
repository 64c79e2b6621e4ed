#include "cli/new_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace assay::cli {
namespace {

class NewFileTest : public ::testing::Test {
 protected:
  NewFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "assay-new-XXXXXX").string();
    dir_ = mkdtemp(name.data());
  }
  ~NewFileTest() override { std::filesystem::remove_all(dir_); }

  std::string Path() const { return (dir_ / "f.assay").string(); }
  std::string Text() const {
    std::ifstream in(Path());
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  size_t Entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(dir_), {}));
  }

  std::filesystem::path dir_;
};

TEST_F(NewFileTest, AppearsOnlyWithCommit) {
  auto file = NewFile::Create(Path());
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Append("abc").ok());
  EXPECT_FALSE(std::filesystem::exists(Path()));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Text(), "abc");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(NewFileTest, AnOldFileStandsUntilTheNewIsComplete) {
  std::ofstream(Path()) << "old";
  {
    auto file = NewFile::Create(Path());
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Append("half").ok());
  }
  EXPECT_EQ(Text(), "old");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(NewFileTest, AFolderOrAMissingFolderIsAnErrorThatNamesThePath) {
  EXPECT_EQ(NewFile::Create(dir_.string()).status().code(), absl::StatusCode::kInvalidArgument);
  const auto missing = NewFile::Create((dir_ / "no" / "f").string());
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.status().ToString().find("/no/f"), std::string::npos);
}

// `-o /dev/null` by root once put a file in the place of the device.
TEST_F(NewFileTest, WhatIsNoFileIsWrittenToAndNeverReplaced) {
  ASSERT_EQ(mkfifo(Path().c_str(), 0600), 0);
  EXPECT_EQ(NewFile::Create(Path()).status().code(), absl::StatusCode::kInvalidArgument);
  const int reader = open(Path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  auto file = NewFile::Create(Path());
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Append("abc").ok());
  ASSERT_TRUE(file->Commit().ok());
  char text[4] = {};
  EXPECT_EQ(read(reader, text, sizeof text), 3);
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(Path()));
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(NewFileTest, ALinkStaysALinkAndOneToNothingIsAnError) {
  const auto target = dir_ / "target";
  std::filesystem::create_symlink("target", Path());
  EXPECT_EQ(NewFile::Create(Path()).status().code(), absl::StatusCode::kInvalidArgument);
  std::ofstream(target) << "old";
  auto file = NewFile::Create(Path());
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Append("abc").ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path()));
  EXPECT_EQ(Text(), "abc");
  EXPECT_EQ(Entries(), 2u);
}

TEST_F(NewFileTest, TheLongestNameThereIsCanBeWrittenAndALongerOneIsBadInput) {
  auto file = NewFile::Create((dir_ / std::string(255, 'x')).string());
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->Commit().ok());
  auto longer = NewFile::Create((dir_ / std::string(256, 'x')).string());
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(longer->Commit().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace assay::cli
