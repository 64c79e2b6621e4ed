// UniqueFd: owns one file descriptor and closes it.
#ifndef ASSAY_AGENT_PROCESS_UNIQUE_FD_H_
#define ASSAY_AGENT_PROCESS_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace assay {

// Thread rule: one owner.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void Reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace assay

#endif  // ASSAY_AGENT_PROCESS_UNIQUE_FD_H_
