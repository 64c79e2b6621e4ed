// NewFile: a file that appears complete or not at all.
//
// Written beside its place under a name of its own, then renamed over it by Commit(); without
// Commit() nothing stays. A link is followed, so that it stays one. What is no file (a pipe, a
// terminal, /dev/null) is never replaced: it is written to as it goes. Thread rule: one owner.
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
  // The error names `path`. A folder, a folder that does not exist, a link to nothing and a pipe
  // that nobody reads are errors.
  static absl::StatusOr<NewFile> Create(const std::string& path);
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::move(other.temporary_)),
        fd_(std::exchange(other.fd_, -1)) {}
  ~NewFile();

  absl::Status Append(std::string_view data);
  // A file is on disk (fsync of it and of its folder) under its name when it returns OK.
  absl::Status Commit();

 private:
  NewFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

  std::string path_;
  std::string temporary_;
  int fd_ = -1;  // with an empty temporary_: of what is no file
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_NEW_FILE_H_
