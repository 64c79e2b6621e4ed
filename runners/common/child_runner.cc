#include "runners/common/child_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "runners/common/process_start.h"

namespace assay {
namespace {

constexpr int kChildRecords = 3;
constexpr int kChildLifeline = 4;

[[noreturn]] void Fail(const std::string& what, int error) {
  throw std::runtime_error(what + ": " + std::strerror(error));
}

class PipeEnd {
 public:
  explicit PipeEnd(int fd = -1) : fd_(fd) {}
  PipeEnd(PipeEnd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  PipeEnd& operator=(PipeEnd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~PipeEnd() { Close(); }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

struct Pipe {
  PipeEnd read, write;
};

// Both ends above the numbers that the child is given, so that none is overwritten on the way.
Pipe MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) Fail("no pipe for a trial's process", errno);
  PipeEnd low_read(ends[0]), low_write(ends[1]);
  Pipe pipe{PipeEnd(fcntl(ends[0], F_DUPFD_CLOEXEC, 10)),
            PipeEnd(fcntl(ends[1], F_DUPFD_CLOEXEC, 10))};
  if (pipe.read.fd() < 0 || pipe.write.fd() < 0) Fail("no pipe for a trial's process", errno);
  return pipe;
}

pid_t Spawn(const std::string& program, double lifeline_seconds, int cell, int records,
            int lifeline) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, cell, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, records, kChildRecords);
  posix_spawn_file_actions_adddup2(&actions, lifeline, kChildLifeline);
  posix_spawn_file_actions_addclosefrom_np(&actions, kChildLifeline + 1);
  std::array<std::string, 7> arguments = {
      program,
      "--cell",
      "-",
      "--records",
      "fd:" + std::to_string(kChildRecords),
      "--lifeline",
      "fd:" + std::to_string(kChildLifeline) + "," + std::to_string(lifeline_seconds)};
  std::array<char*, 8> argv{};
  std::transform(arguments.begin(), arguments.end(), argv.begin(),
                 [](std::string& argument) { return argument.data(); });
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) Fail("a trial's process could not be started (" + program + ")", error);
  return pid;
}

// A child that is left by an exception does not stay.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    Wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // How it ended, as a sentence. Its lifeline, which nobody feeds meanwhile, bounds the wait.
  std::string Wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (WIFSIGNALED(status)) {
      return "its process was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
             strsignal(WTERMSIG(status)) + ")";
    }
    return "its process left with exit code " + std::to_string(WEXITSTATUS(status)) +
           " and without a result";
  }

 private:
  pid_t pid_;
};

void WriteCell(PipeEnd end, const CellFile& cell) {
  CellFile stamped = cell;
  stamped.spawned_at_boot_ns = BootNowNanoseconds();
  // Less than a pipe holds, so that it never waits for a child that does not read.
  const std::string text =
      CellFileToJson(stamped).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (write(end.fd(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    Fail("a trial's cell could not be written", errno);
  }
}

// Splits what the child writes into lines and its records; false once it broke the protocol.
class ChildRecords {
 public:
  ChildRecords(const OnChildRecord& on_record, ChildEnd& end) : on_record_(on_record), end_(end) {}

  bool Take(std::string_view bytes) {
    buffer_ += bytes;
    for (size_t eol; (eol = buffer_.find('\n')) != std::string::npos; buffer_.erase(0, eol + 1)) {
      record::ParseResult parsed =
          record::ParseRecordLine(std::string_view(buffer_).substr(0, eol));
      if (!parsed.record) {
        end_.problem = parsed.error;
        return false;
      }
      if (auto* result = std::get_if<record::Result>(&*parsed.record)) {
        end_.result = std::move(*result);
      } else {
        on_record_(*parsed.record);
      }
    }
    if (buffer_.size() <= static_cast<size_t>(record::kMaxLineBytes)) return true;
    end_.problem = "a record line of the runner is longer than 1 MiB";
    return false;
  }

 private:
  const OnChildRecord& on_record_;
  ChildEnd& end_;
  std::string buffer_;
};

// Until the child closes its records or breaks the protocol. A byte of life at least every quarter
// of the lifeline.
bool ReadRecords(int fd, int lifeline, double lifeline_seconds, ChildRecords& records) {
  using Clock = std::chrono::steady_clock;
  const auto quarter = std::chrono::duration<double>(lifeline_seconds / 4);
  std::optional<Clock::time_point> fed;
  for (;;) {
    if (!fed || Clock::now() - *fed >= quarter) {
      // A full pipe is a child that reads nothing, and a broken one is seen by the end of records.
      (void)!write(lifeline, "l", 1);
      fed = Clock::now();
    }
    const std::chrono::duration<double> left = quarter - (Clock::now() - *fed);
    pollfd poll_fd{fd, POLLIN, 0};
    const int timeout_ms = static_cast<int>(std::ceil(std::max(left.count(), 0.0) * 1e3));
    if (poll(&poll_fd, 1, timeout_ms) <= 0) continue;
    char bytes[16384];
    const ssize_t count = read(fd, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    if (!records.Take({bytes, static_cast<size_t>(count)})) return false;
  }
}

}  // namespace

ChildEnd RunChildProcess(const std::string& program, double lifeline_seconds, const CellFile& cell,
                         const OnChildRecord& on_record) {
  Pipe cell_pipe = MakePipe(), record_pipe = MakePipe(), lifeline_pipe = MakePipe();
  fcntl(lifeline_pipe.write.fd(), F_SETFL, O_NONBLOCK);
  WriteCell(std::move(cell_pipe.write), cell);
  Child child(Spawn(program, lifeline_seconds, cell_pipe.read.fd(), record_pipe.write.fd(),
                    lifeline_pipe.read.fd()));
  record_pipe.write.Close();
  lifeline_pipe.read.Close();
  ChildEnd end;
  ChildRecords records(on_record, end);
  if (!ReadRecords(record_pipe.read.fd(), lifeline_pipe.write.fd(), lifeline_seconds, records)) {
    end.result.reset();
    return end;
  }
  const std::string how = child.Wait();
  if (!end.result) end.problem = how;
  return end;
}

}  // namespace assay
