#include "agent/inventory/bounded_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "agent/process/spawn.h"
#include "agent/process/unique_fd.h"
#include "common/clock/clock.h"
#include "common/status/status.h"

namespace assay {
namespace {

constexpr size_t kMostOutput = 1 << 20;
constexpr size_t kMostErrors = 4096;

struct Pipe {
  UniqueFd read_end, write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// True while the other end is open.
bool Drain(int fd, std::string& into, bool keep_tail) {
  char buffer[16384];
  const ssize_t count = read(fd, buffer, sizeof buffer);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  if (keep_tail) {
    into.append(buffer, static_cast<size_t>(count));
    if (into.size() > kMostErrors) into.erase(0, into.size() - kMostErrors);
  } else if (into.size() < kMostOutput) {
    into.append(buffer, std::min(static_cast<size_t>(count), kMostOutput - into.size()));
  }
  return true;
}

int MillisecondsTo(BootTime until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - BootClock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60000));
}

// Waits until the program ends; false at the deadline. Pipes may stay open in a grandchild, so the
// end of the process decides, not the end of file.
bool ReapBy(pid_t pid, BootTime until, int& status) {
  for (;;) {
    const pid_t reaped = waitpid(pid, &status, WNOHANG);
    if (reaped == pid) return true;
    if (reaped < 0 && errno != EINTR) {
      status = 0;
      return true;
    }
    if (MillisecondsTo(until) == 0) return false;
    poll(nullptr, 0, std::min(MillisecondsTo(until), 5));
  }
}

}  // namespace

absl::StatusOr<CommandOutput> RunBounded(const std::string& program,
                                         const std::vector<std::string>& arguments,
                                         const std::map<std::string, std::string>& environment,
                                         std::chrono::milliseconds deadline) {
  const BootTime until = BootClock::now() + deadline;
  ASSAY_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  ASSAY_ASSIGN_OR_RETURN(Pipe err, MakePipe());
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSAY_ASSIGN_OR_RETURN(
      const pid_t pid, SpawnSessionLeader(program, arguments, environment,
                                          {null.get(), out.write_end.get(), err.write_end.get()}));
  out.write_end.Reset();
  err.write_end.Reset();
  CommandOutput result;
  bool out_open = true, err_open = true;
  while ((out_open || err_open) && MillisecondsTo(until) > 0) {
    pollfd fds[2] = {{out_open ? out.read_end.get() : -1, POLLIN, 0},
                     {err_open ? err.read_end.get() : -1, POLLIN, 0}};
    if (poll(fds, 2, MillisecondsTo(until)) < 0 && errno != EINTR) break;
    if (fds[0].revents != 0) out_open = Drain(out.read_end.get(), result.output, false);
    if (fds[1].revents != 0) err_open = Drain(err.read_end.get(), result.errors, true);
  }
  int status = 0;
  const bool ended = ReapBy(pid, until, status);
  kill(-pid, SIGKILL);  // also what it left behind in its group
  if (!ended) {
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return absl::DeadlineExceededError(
        fmt::format("{} did not answer within {} ms", program, deadline.count()));
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace assay
