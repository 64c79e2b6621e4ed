#include "coordinator/local_agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <random>
#include <system_error>

#include "common/clock/clock.h"
#include "common/log/log.h"
#include "common/net/backoff.h"
#include "common/status/status.h"

namespace assay {
namespace {

constexpr int kExecFailed = 127;

// Runs in the child of vfork: async-signal-safe calls only, no allocation.
[[noreturn]] void ExecChild(const char* program, char* const* arguments, pid_t parent) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // The parent may have died before the line above; then nobody would send the signal.
  if (getppid() != parent) _exit(kExecFailed);
  const int null = open("/dev/null", O_RDONLY);
  if (null > 0) dup2(null, 0);
  syscall(SYS_close_range, 3u, ~0u, 0u);
  execv(program, arguments);
  _exit(kExecFailed);
}

// vfork and not posix_spawn, which has no way to ask for the signal at the parent's death; not
// fork, which would copy the page tables and run the handlers of other libraries.
pid_t Spawn(const std::string& program, std::vector<std::string> arguments) {
  std::vector<char*> argv;
  std::string name = program;
  argv.push_back(name.data());
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = vfork();  // NOLINT(bugprone-unsafe-functions): why it must be, see above
  if (child == 0) ExecChild(program.c_str(), argv.data(), parent);
  return child;
}

int PidfdOpen(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

int ToPollTimeout(std::chrono::milliseconds wait) {
  return static_cast<int>(std::max<int64_t>(0, wait.count()));
}

// Waits until the process behind `pidfd` is gone; false when `wait` passed first.
bool GoneWithin(int pidfd, std::chrono::milliseconds wait) {
  const BootTime end = BootClock::now() + wait;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - BootClock::now());
    pollfd entry = {pidfd, POLLIN, 0};
    const int n = poll(&entry, 1, ToPollTimeout(left));
    if (n > 0) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

std::string DescribeEnd(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = sigdescr_np(WTERMSIG(status));
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), name ? name : "unknown");
  }
  if (WEXITSTATUS(status) == kExecFailed) return "could not be executed (exit code 127)";
  return fmt::format("left with exit code {}", WEXITSTATUS(status));
}

}  // namespace

absl::Status LocalAgent::Start() {
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  if (stop_fd_ < 0) return ErrnoStatus(errno, "cannot watch the local agent");
  try {
    thread_ = std::thread([this] { Loop(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        fmt::format("cannot start the thread of the local agent: {}", error.what()));
  }
  return absl::OkStatus();
}

void LocalAgent::Stop() {
  if (stop_fd_ < 0) return;
  const uint64_t one = 1;
  // Cannot fail: the counter of an eventfd takes 2^64 - 2.
  [[maybe_unused]] const ssize_t n = write(stop_fd_, &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
  close(stop_fd_);
  stop_fd_ = -1;
}

bool LocalAgent::StopWithin(std::chrono::milliseconds wait) const {
  pollfd entry = {stop_fd_, POLLIN, 0};
  return poll(&entry, 1, ToPollTimeout(wait)) > 0;
}

void LocalAgent::Loop() {
  Backoff backoff(options_.backoff_first, options_.backoff_cap, std::random_device()());
  while (true) {
    const BootTime started = BootClock::now();
    const pid_t child = Spawn(options_.program, options_.arguments);
    if (child > 0) {
      pid_ = child;
      ++starts_;
      const bool again = Attend(child);
      pid_ = 0;
      if (!again) return;
      if (BootClock::now() - started >= options_.healthy_after) backoff.Reset();
    } else {
      spdlog::error("cannot start the local agent {}: {}", options_.program,
                    std::generic_category().message(errno));
    }
    const std::chrono::milliseconds wait = backoff.Next();
    spdlog::info("the local agent is started again in {} ms", wait.count());
    if (StopWithin(wait)) return;
  }
}

bool LocalAgent::Attend(pid_t child) {
  const int pidfd = PidfdOpen(child);
  pollfd entries[2] = {{stop_fd_, POLLIN, 0}, {pidfd, POLLIN, 0}};
  if (pidfd < 0) {
    // No descriptor left: better no local agent than one that nobody can stop.
    spdlog::error("cannot watch the local agent: {}", std::generic_category().message(errno));
    kill(child, SIGKILL);
  } else {
    while (poll(entries, 2, -1) < 0 && errno == EINTR) {
    }
  }
  const bool stopping = entries[0].revents != 0;
  if (stopping && entries[1].revents == 0) {
    kill(child, SIGTERM);
    if (!GoneWithin(pidfd, options_.stop_grace)) {
      spdlog::warn("the local agent did not leave within {} ms and is killed",
                   options_.stop_grace.count());
      kill(child, SIGKILL);
    }
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (pidfd >= 0) close(pidfd);
  if (!stopping) spdlog::warn("the local agent {}", DescribeEnd(status));
  return !stopping;
}

}  // namespace assay
