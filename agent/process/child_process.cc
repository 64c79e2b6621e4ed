#include "agent/process/child_process.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "agent/process/spawn.h"
#include "common/log/log.h"
#include "common/status/status.h"

namespace assay {
namespace {

// A child that writes without end must not keep the loop from the lifelines of the others.
constexpr size_t kReadBudgetBytes = 256 << 10;
// More than a pipe holds (1 MiB at most without privileges): what was left at the end.
constexpr size_t kLastReadBytes = 2 << 20;
// A process in uninterruptible sleep dies when the driver lets go of it, or never.
constexpr std::chrono::seconds kSweepLimit{10};

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void SetNonBlocking(const UniqueFd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

enum class ReadEnd { kMore, kEmpty, kClosed };

// Hands on at most `budget` bytes.
template <class Sink>
ReadEnd ReadSome(int fd, size_t budget, const Sink& sink) {
  std::array<char, 65536> buffer;
  size_t total = 0;
  while (total < budget) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN ? ReadEnd::kEmpty : ReadEnd::kClosed;
    if (got == 0) return ReadEnd::kClosed;
    total += static_cast<size_t>(got);
    sink(std::string_view(buffer.data(), static_cast<size_t>(got)));
  }
  return ReadEnd::kMore;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Spawn(EventLoop& loop,
                                                                  OrphanReaper& reaper,
                                                                  const ChildSpec& spec,
                                                                  ChildObserver& observer) {
  ASSAY_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  ASSAY_ASSIGN_OR_RETURN(Pipe records, MakePipe());
  ASSAY_ASSIGN_OR_RETURN(Pipe lifeline, MakePipe());
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return ErrnoStatus(errno, "cannot open /dev/null");
  std::unique_ptr<ChildProcess> child(new ChildProcess(loop, reaper, observer));
  if (!spec.log_path.empty()) {
    // No log is a nuisance, not a reason to lose the cell.
    if (auto log = CappedLogFile::Create(spec.log_path, kLogFileBytes); log.ok()) {
      child->log_ = *std::move(log);
    } else {
      spdlog::warn("{}", Message(log.status()));
    }
  }
  std::vector<int> descriptors{null.get(), output.write_end.get(), output.write_end.get(),
                               records.write_end.get(), lifeline.read_end.get()};
  descriptors.insert(descriptors.end(), spec.passed_fds.begin(), spec.passed_fds.end());
  std::map<std::string, std::string> environment = spec.environment;
  if (!spec.mark.empty()) environment[kMarkVariable] = spec.mark;
  ASSAY_ASSIGN_OR_RETURN(child->pid_, SpawnSessionLeader(spec.program, spec.arguments, environment,
                                                         descriptors, spec.cpus));
  reaper.Add(child->pid_, spec.mark);
  child->output_ = std::move(output.read_end);
  child->records_ = std::move(records.read_end);
  child->lifeline_ = std::move(lifeline.write_end);
  child->lifeline_interval_ = spec.lifeline_interval;
  ASSAY_RETURN_IF_ERROR(child->WatchAll());
  return child;
}

ChildProcess::ChildProcess(EventLoop& loop, OrphanReaper& reaper, ChildObserver& observer)
    : loop_(loop), reaper_(reaper), observer_(observer) {}

absl::Status ChildProcess::WatchAll() {
  // glibc 2.36 declares pidfd_open without C linkage.
  pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd_) return ErrnoStatus(errno, "cannot watch the new process");
  for (const UniqueFd* fd : {&output_, &records_, &lifeline_}) SetNonBlocking(*fd);
  ASSAY_RETURN_IF_ERROR(
      loop_.Watch(output_.get(), EPOLLIN, [this](uint32_t) { OnOutput(kReadBudgetBytes); }));
  ASSAY_RETURN_IF_ERROR(
      loop_.Watch(records_.get(), EPOLLIN, [this](uint32_t) { OnRecordBytes(kReadBudgetBytes); }));
  ASSAY_RETURN_IF_ERROR(loop_.Watch(pidfd_.get(), EPOLLIN, [this](uint32_t) { OnExit(); }));
  BeatLifeline();
  return absl::OkStatus();
}

ChildProcess::~ChildProcess() {
  *alive_ = false;
  loop_.Cancel(beat_timer_);
  loop_.Cancel(kill_timer_);
  for (const UniqueFd* fd : {&output_, &records_, &pidfd_}) {
    if (*fd) loop_.Unwatch(fd->get());
  }
  if (pid_ < 0 || reaped_) return;
  Signal(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  reaper_.Sweep(pid_, kSweepLimit, [](size_t) {});
}

void ChildProcess::Signal(int signal) {
  // The group exists as long as the leader has not been reaped, so its number is not reused.
  if (!reaped_) ::kill(-pid_, signal);
}

void ChildProcess::Stop(std::chrono::nanoseconds grace) {
  if (reaped_) return;
  Signal(SIGTERM);
  Signal(SIGCONT);
  const BootTime when = BootClock::now() + grace;
  if (kill_timer_.second != 0 && kill_timer_.first <= when) return;
  loop_.Cancel(kill_timer_);
  kill_timer_ = loop_.RunAt(when, [this] { Signal(SIGKILL); });
}

void ChildProcess::OnOutput(size_t budget) {
  const ReadEnd end = ReadSome(output_.get(), budget, [this](std::string_view bytes) {
    tail_.Append(bytes);
    log_.Append(bytes);
  });
  if (end == ReadEnd::kClosed) {
    loop_.Unwatch(output_.get());
    output_.Reset();
  }
}

void ChildProcess::OnRecordBytes(size_t budget) {
  const ReadEnd end = ReadSome(records_.get(), budget,
                               [this](std::string_view bytes) { observer_.OnRecords(bytes); });
  if (end == ReadEnd::kClosed) CloseRecords(true);
}

void ChildProcess::CloseRecords(bool tell) {
  loop_.Unwatch(records_.get());
  records_.Reset();
  if (tell) observer_.OnRecordsClosed();
}

void ChildProcess::BeatLifeline() {
  if (lifeline_interval_ <= std::chrono::nanoseconds::zero()) return;
  const char byte = '.';
  // A full pipe belongs to a child that does not read: it does not need the byte. EPIPE neither.
  [[maybe_unused]] const ssize_t written = ::write(lifeline_.get(), &byte, 1);
  beat_timer_ = loop_.RunAt(BootClock::now() + lifeline_interval_, [this] { BeatLifeline(); });
}

void ChildProcess::OnExit() {
  // First the group, while the unreaped leader still keeps its number from being reused.
  Signal(SIGKILL);
  rusage usage{};
  int status = 0;
  if (::wait4(pid_, &status, WNOHANG, &usage) != pid_) return;
  reaped_ = true;
  loop_.Cancel(beat_timer_);
  loop_.Cancel(kill_timer_);
  loop_.Unwatch(pidfd_.get());
  exit_.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  exit_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  exit_.peak_resident_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  exit_.user_seconds = Seconds(usage.ru_utime);
  exit_.system_seconds = Seconds(usage.ru_stime);
  if (output_) OnOutput(kLastReadBytes);
  if (records_) OnRecordBytes(kLastReadBytes);
  if (output_) {
    loop_.Unwatch(output_.get());
    output_.Reset();
  }
  if (records_) CloseRecords(false);
  reaper_.Sweep(pid_, kSweepLimit, [this, alive = alive_](size_t survivors) {
    if (!*alive) return;
    exit_.survivors = survivors;
    observer_.OnGone(exit_);
  });
}

}  // namespace assay
