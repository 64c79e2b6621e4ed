// Programs of Assay sit beside each other; each finds the others by its own place on disk.
#ifndef ASSAY_COMMON_NET_SIBLING_H_
#define ASSAY_COMMON_NET_SIBLING_H_

#include <string>

#include "absl/status/statusor.h"

namespace assay {

// Folder of the running program (/proc/self/exe), without the closing slash.
absl::StatusOr<std::string> ProgramDir();

// Absolute path of `name` beside the running program. NotFound with the path where it is missing or
// not executable.
absl::StatusOr<std::string> SiblingProgram(const std::string& name);

}  // namespace assay

#endif  // ASSAY_COMMON_NET_SIBLING_H_
