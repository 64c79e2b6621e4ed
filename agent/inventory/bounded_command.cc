#include "agent/inventory/bounded_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
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
// More than a pipe holds (1 MiB at most without privileges), and an end to what is read at once:
// a program that writes without end must not keep us from the deadline.
constexpr size_t kMostAtOnce = 2 << 20;

struct Pipe {
  UniqueFd read_end, write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Takes what lies in the pipe; true while the other end is open.
bool Drain(int fd, std::string& into, bool keep_tail) {
  char buffer[16384];
  for (size_t total = 0; total < kMostAtOnce;) {
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    if (count == 0) return false;
    const auto got = static_cast<size_t>(count);
    total += got;
    if (keep_tail) {
      into.append(buffer, got);
      if (into.size() > kMostErrors) into.erase(0, into.size() - kMostErrors);
    } else if (into.size() < kMostOutput) {
      into.append(buffer, std::min(got, kMostOutput - into.size()));
    }
  }
  return true;
}

int MillisecondsTo(BootTime until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - BootClock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60000));
}

// Reads both pipes until the program itself has ended; false at the deadline. Not until the end of
// file: a grandchild may hold the pipes open for as long as it likes.
bool ReadToItsEnd(const UniqueFd& pidfd, const UniqueFd& out, const UniqueFd& err, BootTime until,
                  CommandOutput& result) {
  bool out_open = true, err_open = true, ended = false;
  while (!ended && MillisecondsTo(until) > 0) {
    pollfd fds[3] = {{pidfd.get(), POLLIN, 0},
                     {out_open ? out.get() : -1, POLLIN, 0},
                     {err_open ? err.get() : -1, POLLIN, 0}};
    if (poll(fds, 3, MillisecondsTo(until)) < 0 && errno != EINTR) return false;
    ended = fds[0].revents != 0;
    // Once more after the end: what it wrote last may lie there.
    if (ended || fds[1].revents != 0) out_open = Drain(out.get(), result.output, false);
    if (ended || fds[2].revents != 0) err_open = Drain(err.get(), result.errors, true);
  }
  return ended;
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
  for (const UniqueFd* fd : {&out.read_end, &err.read_end}) {
    fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  }
  CommandOutput result;
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const bool ended = pidfd && ReadToItsEnd(pidfd, out.read_end, err.read_end, until, result);
  // Also what it left behind in its group, whose number is ours until the leader is reaped.
  kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!pidfd) return absl::ResourceExhaustedError("no descriptor is left to watch " + program);
  if (!ended) {
    return absl::DeadlineExceededError(
        fmt::format("{} did not answer within {} ms", program, deadline.count()));
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace assay
