// A folder of fixtures that goes away with the test.
#ifndef ASSAY_TESTS_UNIT_AGENT_HOST_FOLDER_H_
#define ASSAY_TESTS_UNIT_AGENT_HOST_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace assay {

class Folder {
 public:
  Folder() {
    std::string pattern = testing::TempDir() + "assay_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string Write(const std::string& name, const std::string& text, bool executable = false) {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    if (executable) std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file.string();
  }

 private:
  std::string path_;
};

}  // namespace assay

#endif  // ASSAY_TESTS_UNIT_AGENT_HOST_FOLDER_H_
