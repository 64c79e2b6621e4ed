// CappedLogFile: a child's output on disk, never more than a stated size: a runner that floods its
// standard output must not fill the node's disk. The end of the output is in the report's log tail.
#ifndef ASSAY_AGENT_PROCESS_CAPPED_LOG_FILE_H_
#define ASSAY_AGENT_PROCESS_CAPPED_LOG_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "agent/process/unique_fd.h"

namespace assay {

// Thread rule: one owner.
class CappedLogFile {
 public:
  CappedLogFile() = default;  // writes nothing
  // Creates or empties `path` with mode 0600.
  static absl::StatusOr<CappedLogFile> Create(const std::string& path, size_t limit_bytes);

  // After the limit a last line says so and the rest is dropped. A failed write (disk full) ends
  // the file, since a missing log must not end a cell.
  void Append(std::string_view bytes);

 private:
  UniqueFd fd_;
  size_t left_ = 0;
};

}  // namespace assay

#endif  // ASSAY_AGENT_PROCESS_CAPPED_LOG_FILE_H_
