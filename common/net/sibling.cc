#include "common/net/sibling.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "common/status/status.h"

namespace assay {

absl::StatusOr<std::string> ProgramDir() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "cannot find this program by /proc/self/exe");
  return self.parent_path().string();
}

absl::StatusOr<std::string> SiblingProgram(const std::string& name) {
  ASSAY_ASSIGN_OR_RETURN(const std::string dir, ProgramDir());
  std::string path = fmt::format("{}/{}", dir, name);
  if (access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(fmt::format("{} is missing or not executable", path));
  }
  return path;
}

}  // namespace assay
