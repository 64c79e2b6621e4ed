#include "agent/process/capped_log_file.h"

#include <fcntl.h>

#include <cerrno>

#include "common/status/status.h"

namespace assay {

absl::StatusOr<CappedLogFile> CappedLogFile::Create(const std::string& path, size_t limit_bytes) {
  CappedLogFile file;
  file.fd_ =
      UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.fd_) return ErrnoStatus(errno, "cannot create the log file " + path);
  file.left_ = limit_bytes;
  return file;
}

void CappedLogFile::Append(std::string_view bytes) {
  if (!fd_) return;
  const bool last = bytes.size() >= left_;
  std::string text(bytes.substr(0, left_));
  left_ -= text.size();
  if (last) text += "\n[the log's size limit is reached; the rest is not kept]\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      fd_.Reset();
      return;
    }
    done += static_cast<size_t>(written);
  }
  if (last) fd_.Reset();
}

}  // namespace assay
