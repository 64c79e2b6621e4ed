#include "cli/connection.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "cli/exit_codes.h"
#include "cli/grpc_control.h"
#include "common/net/state_dir.h"
#include "common/net/state_files.h"
#include "common/status/status.h"

namespace assay::cli {
namespace {

using std::chrono::milliseconds;

// A coordinator whose lock another held, which then left, is worth a second start; one that fails
// for a reason of its own fails again.
constexpr int kMostStarts = 2;
constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLongestPause{200};

bool IsAlive(int64_t pid) {
  return pid > 0 && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

// The exit status once the child has ended.
std::optional<int> Reap(pid_t pid) {
  int status = 0;
  const pid_t ended = waitpid(pid, &status, WNOHANG);
  if (ended == 0) return std::nullopt;
  return status;
}

// "ended" of one whose end another command saw.
std::string EndText(const std::optional<int>& status) {
  if (!status) return "ended";
  if (WIFSIGNALED(*status)) return fmt::format("was ended by signal {}", WTERMSIG(*status));
  return fmt::format("ended with exit code {}", WEXITSTATUS(*status));
}

std::string WithLog(std::string sentence, const std::string& state_dir, int64_t offset) {
  // Where it is so full that the log cannot say it either.
  constexpr uint64_t kRoomBytes = uint64_t{64} << 10;
  struct statvfs disk = {};
  if (statvfs(state_dir.c_str(), &disk) == 0 &&
      uint64_t{disk.f_bavail} * uint64_t{disk.f_frsize} < kRoomBytes) {
    sentence += fmt::format("; the disk of {} is full: free some space", state_dir);
  }
  const std::string tail = LogTail(state_dir, offset);
  if (tail.empty()) return sentence + fmt::format("; its log is {}/coordinator.log", state_dir);
  return sentence + fmt::format("; the end of {}/coordinator.log:\n{}", state_dir, tail);
}

// Why a coordinator left with the exit code for what is wrong with its files: its last sentence.
std::string LastSentence(const std::string& state_dir, int64_t offset) {
  constexpr std::string_view kName = "assay-coordinator: ";
  const std::string tail = LogTail(state_dir, offset);
  const size_t at = tail.rfind(kName);
  if (at == std::string::npos || (at > 0 && tail[at - 1] != '\n')) return "";
  return tail.substr(at + kName.size());
}

// Of a coordinator that was started and left. FailedPrecondition for what the user has to mend,
// Unavailable with the end of the log for all else.
absl::Status CouldNotStart(const std::string& state_dir, const std::optional<int>& end,
                           int64_t log_offset) {
  if (end && WIFEXITED(*end) && WEXITSTATUS(*end) == kExitBadInput) {
    const std::string sentence = LastSentence(state_dir, log_offset);
    if (!sentence.empty()) return absl::FailedPreconditionError(sentence);
  }
  return absl::UnavailableError(WithLog(
      fmt::format("the coordinator of {} could not be started: it {}", state_dir, EndText(end)),
      state_dir, log_offset));
}

}  // namespace

ConnectionPorts SystemPorts(Transport transport) {
  return {[transport = std::move(transport)](const std::string& address) {
            return MakeGrpcControl(address, transport);
          },
          StartLocalCoordinator};
}

absl::StatusOr<std::unique_ptr<Control>> Connection::Open(const std::string& address) {
  ASSAY_ASSIGN_OR_RETURN(auto control, ports_.open(address));
  ASSAY_ASSIGN_OR_RETURN(info_, control->GetInfo());
  if (options_.on_connected) options_.on_connected(info_);
  return control;
}

absl::StatusOr<std::unique_ptr<Control>> Connection::OpenEndpoint() {
  const auto endpoint = ReadEndpoint(options_.state_dir);
  if (!endpoint.ok()) return absl::UnavailableError(Message(endpoint.status()));
  if (!IsAlive(endpoint->pid)) return absl::UnavailableError("its process is gone");
  auto control = Open(endpoint->address);
  // Whatever is wrong with a file that a crash may have left behind is a reason to start anew; but
  // who holds the state directory and wants TLS, or another certificate, does so on and on.
  const bool final =
      absl::IsFailedPrecondition(control.status()) || absl::IsPermissionDenied(control.status());
  if (control.ok() || (final && StateLock::IsHeld(options_.state_dir))) return control;
  return absl::UnavailableError(Message(control.status()));
}

absl::StatusOr<std::unique_ptr<Control>> Connection::Connect() {
  if (local()) return ConnectLocal();
  auto control = Open(options_.coordinator);
  // An answer that says no, and what is wrong with certificates, are no absence.
  if (control.ok() || absl::IsInvalidArgument(control.status()) ||
      absl::IsFailedPrecondition(control.status()) || absl::IsPermissionDenied(control.status())) {
    return control;
  }
  return absl::UnavailableError(fmt::format("no coordinator answers at {}: {}",
                                            options_.coordinator, Message(control.status())));
}

absl::StatusOr<std::unique_ptr<Control>> Connection::ConnectLocal() {
  ASSAY_RETURN_IF_ERROR(CreateStateDir(options_.state_dir));
  const BootTime deadline = BootClock::now() + options_.start_limit;
  std::optional<StartedProgram> started;
  int64_t log_offset = 0;
  int starts = 0;
  BootTime silent_since = BootClock::now();
  milliseconds pause = kFirstPause;
  while (true) {
    auto control = OpenEndpoint();
    if (control.ok() || !absl::IsUnavailable(control.status())) return control;
    if (!StateLock::IsHeld(options_.state_dir)) {
      silent_since = BootClock::now();
    } else if (BootClock::now() - silent_since >= options_.socket_after) {
      // Somebody lives there and could not say where: on a full disk results can still be read.
      if (const auto socket = LocalSocketPath(options_.state_dir); socket.ok()) {
        if (auto found = Open("unix:" + *socket); found.ok()) return found;
      }
    }
    const std::optional<int> end = started ? Reap(started->pid) : std::nullopt;
    if (end) started.reset();
    if (!started && !StateLock::IsHeld(options_.state_dir)) {
      // One that ended between the first look and this one may have answered another command.
      if (starts == kMostStarts) return CouldNotStart(options_.state_dir, end, log_offset);
      ASSAY_RETURN_IF_ERROR(CheckStateFiles(options_.state_dir));
      ASSAY_ASSIGN_OR_RETURN(started, ports_.start(options_.state_dir));
      log_offset = started->log_offset;
      ++starts;
      pause = kFirstPause;
    }
    if (BootClock::now() >= deadline) {
      return absl::UnavailableError(WithLog(
          fmt::format("the coordinator of {} did not answer within {} s ({})", options_.state_dir,
                      options_.start_limit.count(), Message(control.status())),
          options_.state_dir, log_offset));
    }
    if (!Sleep(pause)) return absl::CancelledError("interrupted before a coordinator answered");
    pause = std::min(pause * 2, kLongestPause);
  }
}

bool Connection::Sleep(milliseconds time) const {
  pollfd interrupt{options_.interrupt_fd, POLLIN, 0};
  const int ready =
      poll(&interrupt, options_.interrupt_fd >= 0 ? 1 : 0, static_cast<int>(time.count()));
  return !(ready > 0 && (interrupt.revents & POLLIN) != 0);
}

}  // namespace assay::cli
