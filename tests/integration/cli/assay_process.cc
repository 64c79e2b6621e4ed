#include "assay_process.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "common/net/sibling.h"

namespace assay::cli {
namespace {

using Steady = std::chrono::steady_clock;

std::vector<std::string> Environment(const ProcessOptions& options) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    // What the test machine happens to have set must not decide a test.
    bool drop = false;
    for (const char* name : {"ASSAY_STATE=", "ASSAY_COORDINATOR=", "NO_COLOR=", "TERM="}) {
      drop = drop || variable.compare(0, std::string(name).size(), name) == 0;
    }
    if (!drop) out.push_back(variable);
  }
  if (options.terminal) out.push_back("TERM=xterm");
  out.insert(out.end(), options.environment.begin(), options.environment.end());
  return out;
}

[[noreturn]] void Exec(const std::string& program, const std::vector<std::string>& words,
                       const std::vector<std::string>& environment) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (const std::string& entry : environment) envp.push_back(const_cast<char*>(entry.c_str()));
  envp.push_back(nullptr);
  for (const int number : {SIGINT, SIGPIPE, SIGTSTP, SIGHUP}) signal(number, SIG_DFL);
  execve(program.c_str(), argv.data(), envp.data());
  _exit(127);
}

}  // namespace

std::string AssayProgram() { return ProgramDir().value_or(".") + "/../bin/assay"; }

std::string FakeCoordinatorProgram() { return ProgramDir().value_or(".") + "/fake_coordinator"; }

AssayProcess::AssayProcess(const std::vector<std::string>& words, ProcessOptions options) {
  const std::string program = options.program.empty() ? AssayProgram() : options.program;
  const std::vector<std::string> environment = Environment(options);
  if (options.terminal) {
    winsize size{30, 100, 0, 0};
    pid_ = forkpty(&out_, nullptr, nullptr, &size);
    if (pid_ == 0) Exec(program, words, environment);
    return;
  }
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    dup2(in[0], 0);
    dup2(options.out_fd >= 0 ? options.out_fd : out[1], 1);
    dup2(err[1], 2);
    Exec(program, words, environment);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  // Inputs of tests fit into a pipe.
  (void)!write(in[1], options.input.data(), options.input.size());
  close(in[1]);
  out_ = out[0];
  err_ = err[0];
}

AssayProcess::~AssayProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
}

void AssayProcess::Signal(int number) const { kill(pid_, number); }

bool AssayProcess::ReadSome(std::chrono::milliseconds limit) {
  pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  poll(fds, 2, static_cast<int>(limit.count()));
  for (int i = 0; i < 2; ++i) {
    if (fds[i].fd < 0 || fds[i].revents == 0) continue;
    char buffer[65536];
    const ssize_t got = read(fds[i].fd, buffer, sizeof buffer);
    if (got > 0) {
      (i == 0 ? result_.out : result_.err).append(buffer, static_cast<size_t>(got));
    } else {
      close(fds[i].fd);
      (i == 0 ? out_ : err_) = -1;
    }
  }
  return out_ >= 0 || err_ >= 0;
}

bool AssayProcess::WaitForText(const std::string& text, std::chrono::seconds limit) {
  const auto deadline = Steady::now() + limit;
  while (true) {
    if (result_.out.find(text) != std::string::npos ||
        result_.err.find(text) != std::string::npos) {
      return true;
    }
    if (Steady::now() >= deadline || !ReadSome(std::chrono::milliseconds(100))) break;
  }
  return result_.out.find(text) != std::string::npos || result_.err.find(text) != std::string::npos;
}

Finished AssayProcess::Wait(std::chrono::seconds limit) {
  const auto deadline = Steady::now() + limit;
  while (Steady::now() < deadline && ReadSome(std::chrono::milliseconds(100))) {
  }
  int status = 0;
  // Both ends closed, or it is late: what is late is killed, so the code shows it.
  if (Steady::now() >= deadline) kill(pid_, SIGKILL);
  waitpid(pid_, &status, 0);
  pid_ = -1;
  result_.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result_;
}

Finished RunAssay(const std::vector<std::string>& words, ProcessOptions options) {
  return AssayProcess(words, std::move(options)).Wait();
}

}  // namespace assay::cli
