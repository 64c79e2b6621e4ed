#include "agent/process/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "agent/process/unique_fd.h"
#include "common/status/status.h"

namespace assay {
namespace {

// Above any number that a child is given.
constexpr int kScratchFd = 64;
// As many processors as Linux can be built for.
constexpr int kMostCpus = 8192;
using CpuMask = std::array<cpu_set_t, kMostCpus / CPU_SETSIZE>;

struct Prepared {
  const char* program;
  char* const* argv;
  char* const* envp;
  const int* descriptors;
  int count;
  int error_fd;
  pid_t parent;
  const CpuMask* cpus;  // null: as the parent
};

// From fork to exec only async-signal-safe calls: another thread may have held any lock.
[[noreturn]] void Fail(int error_fd) {
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(error_fd, &error, sizeof error);
  ::_exit(127);
}

void ResetSignals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void PreferForOomKill() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, "500", 3);
  ::close(fd);
}

[[noreturn]] void RunChild(const Prepared& p) {
  ResetSignals();
  if (::setsid() < 0) Fail(p.error_fd);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) Fail(p.error_fd);
  // The parent may have ended before the line above.
  if (::getppid() != p.parent) ::_exit(127);
  PreferForOomKill();
  // A processor may have gone since they were chosen; the parent reads back what came of it.
  if (p.cpus != nullptr) ::sched_setaffinity(0, sizeof *p.cpus, p.cpus->data());
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  int moved[kScratchFd];
  for (int i = 0; i < p.count; ++i) {
    moved[i] = p.descriptors[i] < 0 ? -1 : ::fcntl(p.descriptors[i], F_DUPFD, kScratchFd);
    if (p.descriptors[i] >= 0 && moved[i] < 0) Fail(p.error_fd);
  }
  for (int i = 0; i < p.count; ++i) {
    ::close(i);
    if (moved[i] >= 0 && ::dup2(moved[i], i) < 0) Fail(p.error_fd);
  }
  ::close_range(static_cast<unsigned>(p.count), static_cast<unsigned>(p.error_fd) - 1, 0);
  ::close_range(static_cast<unsigned>(p.error_fd) + 1, ~0U, 0);
  ::execve(p.program, p.argv, p.envp);
  Fail(p.error_fd);
}

}  // namespace

absl::StatusOr<pid_t> SpawnSessionLeader(const std::string& program,
                                         const std::vector<std::string>& arguments,
                                         const std::map<std::string, std::string>& environment,
                                         const std::vector<int>& descriptors,
                                         const std::vector<int>& cpus) {
  if (descriptors.size() >= kScratchFd) {
    return absl::InvalidArgumentError("too many descriptors for a child");
  }
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.emplace_back(name) += "=" + value;
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  const UniqueFd read_end(ends[0]);
  UniqueFd low_end(ends[1]);
  UniqueFd write_end(::fcntl(low_end.get(), F_DUPFD_CLOEXEC, kScratchFd));
  if (!write_end) return ErrnoStatus(errno, "cannot make a pipe");
  low_end.Reset();

  CpuMask mask{};
  for (const int cpu : cpus) {
    if (cpu >= 0 && cpu < kMostCpus) CPU_SET_S(cpu, sizeof mask, mask.data());
  }
  const Prepared prepared{program.c_str(),
                          argv.data(),
                          envp.data(),
                          descriptors.data(),
                          static_cast<int>(descriptors.size()),
                          write_end.get(),
                          ::getpid(),
                          cpus.empty() ? nullptr : &mask};
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus(errno, "cannot fork for " + program);
  if (pid == 0) RunChild(prepared);
  write_end.Reset();
  int error = 0;
  ssize_t got;
  do {
    got = ::read(read_end.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    ::waitpid(pid, nullptr, 0);
    return ErrnoStatus(error, "cannot start " + program);
  }
  return pid;
}

}  // namespace assay
