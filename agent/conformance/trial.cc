#include "agent/conformance/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "agent/cell/record_lines.h"
#include "agent/host/proc_files.h"
#include "agent/process/spawn.h"
#include "agent/process/unique_fd.h"
#include "common/clock/clock.h"
#include "common/status/status.h"

namespace assay {
namespace {

constexpr size_t kMostTrialOutput = 1 << 20;
constexpr size_t kMostTrialErrors = 4096;
// Of a records file, which a runner may make as long as it likes.
constexpr size_t kMostTrialFile = 16 << 20;

struct PipeEnds {
  UniqueFd read_end, write_end;
};

absl::StatusOr<PipeEnds> MakePipeEnds() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  PipeEnds pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  return pipe;
}

class RunningTrial {
 public:
  explicit RunningTrial(const Trial& trial) : trial_(trial) {}
  absl::StatusOr<TrialEnd> Run();

 private:
  absl::Status Start();
  void Watch();
  void Turn(std::chrono::milliseconds wait);
  void Beat();
  void TakeText(UniqueFd& fd, bool keep_tail, std::string& text);
  void TakeRecords();
  void FeedInput();
  void OnLine(std::string_view line);
  void Do();
  void ReadFile();
  void Reap();
  std::chrono::nanoseconds Now() const { return BootClock::now() - start_; }

  const Trial& trial_;
  TrialEnd end_;
  BootTime start_;
  BootTime until_;
  BootTime done_at_;
  BootTime next_beat_;
  pid_t pid_ = -1;
  bool gone_ = false;
  UniqueFd pidfd_, input_, output_, errors_, records_, lifeline_;
  size_t fed_ = 0;
  RecordLines lines_;
};

absl::Status RunningTrial::Start() {
  ASSAY_ASSIGN_OR_RETURN(PipeEnds input, MakePipeEnds());
  ASSAY_ASSIGN_OR_RETURN(PipeEnds output, MakePipeEnds());
  ASSAY_ASSIGN_OR_RETURN(PipeEnds errors, MakePipeEnds());
  ASSAY_ASSIGN_OR_RETURN(PipeEnds records, MakePipeEnds());
  ASSAY_ASSIGN_OR_RETURN(PipeEnds lifeline, MakePipeEnds());
  start_ = next_beat_ = BootClock::now();
  until_ = start_ + trial_.limit;
  ASSAY_ASSIGN_OR_RETURN(
      pid_,
      SpawnSessionLeader(trial_.program, trial_.arguments, trial_.environment,
                         {input.read_end.get(), output.write_end.get(), errors.write_end.get(),
                          records.write_end.get(), lifeline.read_end.get()}));
  if (trial_.most_data_bytes > 0) {
    const rlimit most{trial_.most_data_bytes, trial_.most_data_bytes};
    prlimit(pid_, RLIMIT_DATA, &most, nullptr);
  }
  pidfd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  input_ = std::move(input.write_end);
  output_ = std::move(output.read_end);
  errors_ = std::move(errors.read_end);
  records_ = std::move(records.read_end);
  lifeline_ = std::move(lifeline.write_end);
  for (const UniqueFd* fd : {&input_, &output_, &errors_, &records_, &lifeline_}) {
    fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  }
  if (pidfd_) return absl::OkStatus();
  Reap();
  return absl::ResourceExhaustedError("no descriptor is left to watch " + trial_.program);
}

void RunningTrial::Beat() {
  if (trial_.lifeline == TrialLifeline::kSilent || !lifeline_) return;
  if (BootClock::now() < next_beat_) return;
  next_beat_ = BootClock::now() +
               std::chrono::milliseconds(static_cast<int64_t>(kTrialLifelineSeconds * 1000 / 4));
  [[maybe_unused]] const ssize_t written = write(lifeline_.get(), "", 1);
}

void RunningTrial::TakeText(UniqueFd& fd, bool keep_tail, std::string& text) {
  char buffer[16384];
  const ssize_t got = read(fd.get(), buffer, sizeof buffer);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return fd.Reset();
  if (got < 0) return;
  text.append(buffer, static_cast<size_t>(got));
  if (keep_tail && text.size() > kMostTrialErrors) text.erase(0, text.size() - kMostTrialErrors);
  if (text.size() > kMostTrialOutput) text.resize(kMostTrialOutput);
}

void RunningTrial::TakeRecords() {
  char buffer[65536];
  const ssize_t got = read(records_.get(), buffer, sizeof buffer);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return records_.Reset();
  if (got < 0) return;
  lines_.Append(std::string_view(buffer, static_cast<size_t>(got)),
                [&](std::string_view line) { OnLine(line); });
}

void RunningTrial::FeedInput() {
  const std::string& text = trial_.standard_input;
  if (fed_ < text.size()) {
    const ssize_t put = write(input_.get(), text.data() + fed_, text.size() - fed_);
    if (put > 0) fed_ += static_cast<size_t>(put);
    if (put < 0 && errno != EAGAIN && errno != EINTR) return input_.Reset();
  }
  if (fed_ >= text.size()) input_.Reset();
}

void RunningTrial::OnLine(std::string_view line) {
  record::ParseResult parsed = record::ParseRecordLine(line);
  if (!parsed.record) {
    if (end_.bad_line.empty()) end_.bad_line = parsed.error;
    return;
  }
  const bool joined = std::holds_alternative<record::Joined>(*parsed.record);
  if (end_.records.size() < kMostTrialRecords) {
    end_.records.push_back({Now(), *std::move(parsed.record)});
  }
  if (joined && !end_.deed_done) Do();
}

void RunningTrial::Do() {
  if (trial_.deed == TrialDeed::kNothing) return;
  end_.deed_done = true;
  done_at_ = BootClock::now();
  until_ = std::min(until_, done_at_ + trial_.limit_after_deed);
  // To the group, as an agent does.
  if (trial_.deed == TrialDeed::kTerminate) kill(-pid_, SIGTERM);
  if (trial_.deed == TrialDeed::kCloseRecords) records_.Reset();
  if (trial_.deed == TrialDeed::kEndLifeline) lifeline_.Reset();
}

void RunningTrial::Turn(std::chrono::milliseconds wait) {
  pollfd fds[5] = {{pidfd_.get(), POLLIN, 0},
                   {output_ ? output_.get() : -1, POLLIN, 0},
                   {errors_ ? errors_.get() : -1, POLLIN, 0},
                   {records_ ? records_.get() : -1, POLLIN, 0},
                   {input_ ? input_.get() : -1, POLLOUT, 0}};
  poll(fds, 5, static_cast<int>(wait.count()));
  if (fds[4].revents != 0) FeedInput();
  if (fds[1].revents != 0) TakeText(output_, false, end_.output);
  if (fds[2].revents != 0) TakeText(errors_, true, end_.errors);
  if (fds[3].revents != 0) TakeRecords();
  gone_ = fds[0].revents != 0;
}

void RunningTrial::Watch() {
  while (!gone_ && BootClock::now() < until_) {
    Beat();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - BootClock::now());
    Turn(std::clamp(left, std::chrono::milliseconds(0), std::chrono::milliseconds(100)));
  }
  end_.length = Now();
  end_.timed_out = !gone_;
  if (end_.deed_done) end_.after_deed = BootClock::now() - done_at_;
  // What lies in the pipes; not until their end, which a grandchild may hold open. A pipe holds at
  // most 1 MiB.
  for (int turn = 0; turn < 100 && (output_ || errors_ || records_); ++turn) {
    const size_t had = end_.output.size() + end_.errors.size() + end_.records.size();
    Turn(std::chrono::milliseconds(0));
    if (turn > 20 && had == end_.output.size() + end_.errors.size() + end_.records.size()) break;
  }
  if (const std::string rest = lines_.TakeRest(); !rest.empty()) OnLine(rest);
}

void RunningTrial::Reap() {
  // Also what it left behind in its group, whose number is ours until the leader is reaped.
  kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) end_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end_.signal = WTERMSIG(status);
}

void RunningTrial::ReadFile() {
  const auto text = ReadFileText(trial_.records_path, kMostTrialFile);
  if (!text) return;
  RecordLines lines;
  const auto take = [&](std::string_view line) {
    record::ParseResult parsed = record::ParseRecordLine(line);
    if (!parsed.record && end_.bad_line.empty()) end_.bad_line = parsed.error;
    if (parsed.record && end_.records.size() < kMostTrialRecords) {
      end_.records.push_back({{}, *std::move(parsed.record)});
    }
  };
  lines.Append(*text, take);
  if (const std::string rest = lines.TakeRest(); !rest.empty()) take(rest);
}

absl::StatusOr<TrialEnd> RunningTrial::Run() {
  ASSAY_RETURN_IF_ERROR(Start());
  Watch();
  Reap();
  if (!trial_.records_path.empty()) ReadFile();
  return std::move(end_);
}

}  // namespace

const record::Result* TrialEnd::Result() const {
  for (auto it = records.rbegin(); it != records.rend(); ++it) {
    if (const auto* result = std::get_if<record::Result>(&it->record)) return result;
  }
  return nullptr;
}

absl::StatusOr<TrialEnd> RunTrial(const Trial& trial) { return RunningTrial(trial).Run(); }

}  // namespace assay
