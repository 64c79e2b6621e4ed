#include "cli/child_report.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "common/clock/clock.h"
#include "common/status/status.h"

namespace assay::cli {
namespace {

constexpr size_t kMostOutputBytes = 8 << 20;
constexpr size_t kMostErrorBytes = 4096;
// For a child that was killed: what the kernel needs to end it, unless it hangs in a driver.
constexpr std::chrono::milliseconds kTimeToDie{1000};

class ReadPipe {
 public:
  ReadPipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
  }
  ~ReadPipe() {
    CloseWrite();
    if (ends_[0] >= 0) close(ends_[0]);
  }
  ReadPipe(const ReadPipe&) = delete;
  ReadPipe& operator=(const ReadPipe&) = delete;
  bool ok() const { return ends_[0] >= 0; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void CloseWrite() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

absl::StatusOr<pid_t> SpawnReporter(const std::string& program,
                                    const std::vector<std::string>& arguments, const ReadPipe& out,
                                    const ReadPipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // This command ignores SIGPIPE; a fresh program does not.
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::UnavailableError(
        Message(ErrnoStatus(error, fmt::format("cannot start {}", program))));
  }
  return pid;
}

// What lies in the pipe; false at its end.
bool TakeFrom(int fd, size_t most, bool keep_tail, std::string& to) {
  char buffer[65536];
  const ssize_t got = read(fd, buffer, sizeof buffer);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  to.append(buffer, static_cast<size_t>(got));
  if (keep_tail && to.size() > most) to.erase(0, to.size() - most);
  return got > 0;
}

absl::Status ReadBoth(const ReadPipe& out, const ReadPipe& err, std::string_view last_bytes,
                      BootTime until, ChildReport& report) {
  bool out_open = true, err_open = true;
  while (out_open) {
    const auto left = until - BootClock::now();
    if (left <= std::chrono::nanoseconds::zero()) return absl::DeadlineExceededError("");
    pollfd fds[2] = {{out.read_end(), POLLIN, 0}, {err_open ? err.read_end() : -1, POLLIN, 0}};
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    if (poll(fds, 2, static_cast<int>(wait)) < 0 && errno != EINTR) {
      return ErrnoStatus(errno, "cannot wait for the report");
    }
    if (fds[1].revents != 0)
      err_open = TakeFrom(err.read_end(), kMostErrorBytes, true, report.errors);
    if (fds[0].revents == 0) continue;
    out_open = TakeFrom(out.read_end(), kMostOutputBytes, false, report.output);
    if (report.output.size() > kMostOutputBytes) {
      return absl::ResourceExhaustedError("it writes more than 8 MiB");
    }
    if (report.output.ends_with(last_bytes)) return absl::OkStatus();
  }
  // What it said last may lie in the other pipe.
  pollfd rest = {err.read_end(), POLLIN, 0};
  while (err_open && poll(&rest, 1, 100) > 0) {
    err_open = TakeFrom(err.read_end(), kMostErrorBytes, true, report.errors);
  }
  return absl::OkStatus();
}

void EndReporter(pid_t pid) {
  kill(pid, SIGKILL);
  const BootTime until = BootClock::now() + kTimeToDie;
  while (waitpid(pid, nullptr, WNOHANG) == 0 && BootClock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

absl::StatusOr<ChildReport> ReadChildReport(const std::string& program,
                                            const std::vector<std::string>& arguments,
                                            std::string_view last_bytes,
                                            std::chrono::milliseconds limit) {
  ReadPipe out, err;
  if (!out.ok() || !err.ok()) return ErrnoStatus(errno, "cannot make a pipe");
  ASSAY_ASSIGN_OR_RETURN(const pid_t pid, SpawnReporter(program, arguments, out, err));
  out.CloseWrite();
  err.CloseWrite();
  ChildReport report;
  const absl::Status read = ReadBoth(out, err, last_bytes, BootClock::now() + limit, report);
  EndReporter(pid);
  if (absl::IsDeadlineExceeded(read)) {
    return absl::DeadlineExceededError(
        fmt::format("{} did not end within {} s: the driver or a program that it asks hangs",
                    program, std::chrono::duration_cast<std::chrono::seconds>(limit).count()));
  }
  ASSAY_RETURN_IF_ERROR(read);
  return report;
}

}  // namespace assay::cli
