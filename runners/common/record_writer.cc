#include "runners/common/record_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "common/runner_protocol/failure_message.h"
#include "common/runner_protocol/records.h"
#include "runners/common/bad_input.h"
#include "runners/common/cell_reader.h"
#include "runners/common/runner_options.h"

namespace assay {
namespace {

// True when all of `line` was taken. A partial write goes on: a pipe takes a line over 4 KiB in
// pieces.
bool WriteAll(int fd, const std::string& line) {
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t count = write(fd, line.data() + done, line.size() - done);
    if (count >= 0) {
      done += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd poll_fd{fd, POLLOUT, 0};
      poll(&poll_fd, 1, 1000);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool ProgressThrottle::Admit(std::chrono::steady_clock::time_point now) {
  if (last_ && now - *last_ < std::chrono::milliseconds(250)) return false;
  last_ = now;
  return true;
}

std::unique_ptr<RecordWriter> RecordWriter::Open(const std::string& target) {
  signal(SIGPIPE, SIG_IGN);
  if (target == "-") return std::make_unique<RecordWriter>(STDOUT_FILENO, false);
  if (const int fd = DescriptorOf(target); fd >= 0) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
      throw BadInput("--records " + target + ": the descriptor is not open for writing");
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return std::make_unique<RecordWriter>(fd, true);
  }
  const int fd = open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0)
    throw BadInput("cannot write records to " + target + ": " +
                   std::generic_category().message(errno));
  return std::make_unique<RecordWriter>(fd, true);
}

RecordWriter::~RecordWriter() {
  if (owned_ && fd_ >= 0) close(fd_);
}

void RecordWriter::WriteRaw(const std::string& bytes) {
  std::lock_guard lock(mutex_);
  if (fd_ >= 0 && !WriteAll(fd_, bytes)) broken_ = true;
}

void RecordWriter::Close() {
  std::lock_guard lock(mutex_);
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  broken_ = true;
}

void RecordWriter::Hello(const std::string& runner, const std::string& version,
                         const std::string& uuid) {
  Write({{"record", record::kHello},
         {"protocol", kRunnerProtocol},
         {"runner", runner},
         {"version", version},
         {"pid", getpid()},
         {"uuid", uuid}});
}

void RecordWriter::Joined() { Write({{"record", record::kJoined}}); }

void RecordWriter::Phase(const std::string& phase) {
  Write({{"record", record::kPhase}, {"phase", phase}});
}

void RecordWriter::Progress(uint64_t step, double throughput, double seconds_left) {
  {
    std::lock_guard lock(mutex_);
    if (!throttle_.Admit(std::chrono::steady_clock::now())) return;
  }
  Write({{"record", record::kProgress},
         {"step", step},
         {"throughput", throughput},
         {"seconds_left", seconds_left}});
}

void RecordWriter::Result(const RunnerResult& result) {
  Write({{"record", record::kResult},
         {"outcome", result.outcome},
         {"reason", result.reason},
         {"message", ShortMessage(result.message)},
         {"fields", result.fields}},
        /*last=*/true);
}

bool RecordWriter::result_written() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

bool RecordWriter::broken() const {
  std::lock_guard lock(mutex_);
  return broken_;
}

void RecordWriter::Write(const nlohmann::json& record, bool last) {
  std::string line = record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  line.push_back('\n');
  std::lock_guard lock(mutex_);
  if (ended_ || broken_) return;
  if (last) ended_ = true;
  if (!WriteAll(fd_, line)) broken_ = true;
}

int RunnerExitCode(const std::string& outcome) {
  if (outcome == "ok") return record::kExitOk;
  if (outcome == "mem_limit") return record::kExitMemLimit;
  if (outcome == "unsupported") return record::kExitUnsupported;
  return record::kExitFail;
}

}  // namespace assay
