#include "cli/new_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

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

}  // namespace
}  // namespace assay::cli
