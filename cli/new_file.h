// NewFile: a file that appears complete or not at all.
//
// Written beside its place under a name of its own, then renamed over it by Commit(); without
// Commit() nothing stays. Thread rule: one owner.
#ifndef ASSAY_CLI_NEW_FILE_H_
#define ASSAY_CLI_NEW_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay::cli {

class NewFile {
 public:
  // The error names `path`. A folder, or a folder that does not exist, is one.
  static absl::StatusOr<NewFile> Create(const std::string& path);
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::move(other.temporary_)),
        fd_(std::exchange(other.fd_, -1)) {}
  ~NewFile();

  absl::Status Append(std::string_view data);
  // On disk (fsync of file and folder) under its name when it returns OK.
  absl::Status Commit();

 private:
  NewFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_NEW_FILE_H_
