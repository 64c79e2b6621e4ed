#include "runners/common/lifeline.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <string>

#include "common/runner_protocol/records.h"
#include "runners/common/bad_input.h"

namespace assay {

Lifeline::Lifeline(int fd, double seconds) : fd_(fd), seconds_(seconds) {
  if (fcntl(fd, F_GETFD) < 0) {
    throw BadInput("--lifeline fd:" + std::to_string(fd) + ": the descriptor is not open");
  }
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (pipe2(stop_pipe_, O_CLOEXEC) != 0) throw BadInput("no descriptor left for the lifeline");
  thread_ = std::thread([this] { Watch(); });
}

Lifeline::~Lifeline() {
  // A byte, since the closed end alone tells nothing while a process forked in between holds it.
  const char stop = 's';
  while (write(stop_pipe_[1], &stop, 1) < 0 && errno == EINTR) {
  }
  thread_.join();
  close(stop_pipe_[1]);
  close(stop_pipe_[0]);
  close(fd_);
}

void Lifeline::Watch() {
  const int timeout_ms = static_cast<int>(std::ceil(seconds_ * 1000));
  for (;;) {
    pollfd fds[2] = {{fd_, POLLIN, 0}, {stop_pipe_[0], POLLIN, 0}};
    const int ready = poll(fds, 2, timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready > 0 && fds[1].revents != 0) return;
    if (ready <= 0) _exit(record::kExitLifeline);
    char bytes[256];
    const ssize_t count = read(fd_, bytes, sizeof bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) _exit(record::kExitLifeline);
  }
}

}  // namespace assay
