// assay-coordinator: binds cells, schedules them, stores what comes back, serves users and agents.
//
// Exit codes: 0 asked to leave or idle; 1 the store failed; 2 could not start, and will not before
// a person mends options, files or address; 3 could not start now (full disk, no descriptor or
// memory left). One sentence says why, the last line on standard error.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/certs/tls_check.h"
#include "common/clock/clock.h"
#include "common/log/log.h"
#include "common/net/address.h"
#include "common/net/sibling.h"
#include "common/net/state_dir.h"
#include "common/net/state_files.h"
#include "common/status/status.h"
#include "common/version.h"
#include "coordinator/coordinator.h"
#include "coordinator/local_agent.h"
#include "coordinator/options.h"
#include "coordinator/store/full_store.h"

namespace assay {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitStoreFailed = 1;
constexpr int kExitCannotStart = 2;
constexpr int kExitNotNow = 3;

using Seconds = std::chrono::duration<double>;

// Not fmt::print, which throws where the log's disk is full.
void Say(const std::string& sentence) {
  std::fputs(fmt::format("assay-coordinator: {}\n", sentence).c_str(), stderr);
}

// Signals and the failed store, as descriptors that main waits for.
struct Wakes {
  int signals = -1;
  int halt = -1;
};

absl::StatusOr<Wakes> OpenWakes() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  // Before any thread is made, so that all of them inherit it.
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  Wakes wakes;
  wakes.signals = signalfd(-1, &set, SFD_CLOEXEC);
  wakes.halt = eventfd(0, EFD_CLOEXEC);
  if (wakes.signals < 0 || wakes.halt < 0) return ErrnoStatus(errno, "cannot wait for signals");
  return wakes;
}

bool IsBusy(const Coordinator& coordinator) {
  return coordinator.HasUnfinishedRuns() || coordinator.control().calls() > 0;
}

enum class Readiness { kReady, kWaits, kLeaves };

// Room for some commits and what stands beside the store.
bool HasRoom(const std::string& dir) {
  constexpr uint64_t kRoomBytes = uint64_t{1} << 20;
  struct statvfs info = {};
  return statvfs(dir.c_str(), &info) == 0 &&
         uint64_t{info.f_bavail} * uint64_t{info.f_frsize} >= kRoomBytes;
}

// Returns the exit code. An idle coordinator sleeps until the idle exit could come. `ready` is
// asked again now and then until it is; one that leaves does so when nobody is served.
int WaitForEnd(const Wakes& wakes, const Coordinator& coordinator, const Clock& clock,
               double idle_exit_seconds, const std::function<Readiness()>& ready) {
  constexpr int kTryAgainMs = 2'000;
  Readiness readiness = ready();
  const auto idle_exit =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(idle_exit_seconds));
  // How long a busy coordinator sleeps between two looks: the idle exit is late by no more.
  const auto look = std::min<std::chrono::nanoseconds>(idle_exit, std::chrono::seconds(5));
  BootTime last_busy = clock.Now();
  bool was_busy = false;
  while (true) {
    int timeout_ms = -1;
    if (idle_exit_seconds > 0) {
      const BootTime now = clock.Now();
      const bool busy = IsBusy(coordinator);
      if (busy || was_busy) last_busy = now;
      was_busy = busy;
      last_busy = std::max(last_busy, coordinator.control().last_call());
      const std::chrono::nanoseconds left = busy ? look : last_busy + idle_exit - now;
      if (left <= std::chrono::nanoseconds::zero()) {
        spdlog::info("idle for {} s: leaving", idle_exit_seconds);
        return kExitOk;
      }
      const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left);
      timeout_ms = static_cast<int>(std::min<int64_t>(ms.count(), 60'000));
    }
    if (readiness != Readiness::kReady) {
      readiness = ready();
      if (readiness == Readiness::kLeaves && coordinator.control().calls() == 0) {
        spdlog::info("there is room again: leaving");
        return kExitOk;
      }
      timeout_ms = timeout_ms < 0 ? kTryAgainMs : std::min(timeout_ms, kTryAgainMs);
    }
    pollfd entries[2] = {{wakes.signals, POLLIN, 0}, {wakes.halt, POLLIN, 0}};
    if (poll(entries, 2, timeout_ms) < 0 && errno != EINTR) return kExitStoreFailed;
    if (entries[1].revents != 0) return kExitStoreFailed;
    if (entries[0].revents != 0) {
      signalfd_siginfo info;
      if (read(wakes.signals, &info, sizeof(info)) == sizeof(info)) {
        spdlog::info("signal {}: leaving", info.ssi_signo);
      }
      return kExitOk;
    }
  }
}

absl::StatusOr<Address> AddressOf(const CoordinatorOptions& options) {
  if (!options.listen.empty()) return ParseAddress(options.listen);
  ASSAY_ASSIGN_OR_RETURN(const std::string path, LocalSocketPath(options.state));
  return ParseAddress("unix:" + path);
}

// What gRPC would not say: files that are no good, and what an operator should know.
absl::Status CheckSecurity(const CoordinatorOptions& options, const Address& address) {
  const Transport& transport = options.transport;
  ASSAY_RETURN_IF_ERROR(CheckTransport(transport, address));
  if (options.local && (transport.UsesTls(address) || transport.IsOpen(address))) {
    return absl::InvalidArgumentError(
        "--local serves this machine alone, in plain text: for a fleet leave it out, and start "
        "assay-agent with a certificate of its own");
  }
  if (transport.IsOpen(address)) {
    spdlog::warn("--insecure: {} takes plain text from everyone who can reach it, as an admin",
                 address.ToString());
  }
  if (!transport.UsesTls(address)) return absl::OkStatus();
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  ASSAY_ASSIGN_OR_RETURN(const TlsReport report,
                         CheckTlsFiles(transport.tls, Identity::Kind::kCoordinator, now));
  for (const std::string& warning : report.warnings) spdlog::warn("{}", warning);
  return absl::OkStatus();
}

CoordinatorTimes TimesOf(const CoordinatorOptions& options) {
  return CoordinatorTimes::WithHeartbeat(
      std::chrono::round<std::chrono::milliseconds>(Seconds(options.heartbeat_seconds)));
}

absl::StatusOr<std::unique_ptr<LocalAgent>> StartAgent(const CoordinatorOptions& options,
                                                       const Address& address) {
  LocalAgentOptions agent;
  ASSAY_ASSIGN_OR_RETURN(agent.program, SiblingProgram("assay-agent"));
  agent.arguments = {"--coordinator",          address.ToString(), "--state",
                     options.state + "/agent", "--log-level",      options.log_level};
  // The local agent reads the file of this state directory, not one of its own folder.
  if (!options.config_file.empty()) {
    agent.arguments.insert(agent.arguments.end(), {"--config", options.config_file});
  }
  agent.arguments.insert(agent.arguments.end(), options.agent_args.begin(),
                         options.agent_args.end());
  auto child = std::make_unique<LocalAgent>(std::move(agent));
  ASSAY_RETURN_IF_ERROR(child->Start());
  return child;
}

// A descriptor for each session, with room for users, the store and gRPC: the usual soft limit of
// 1024 would turn away half of a fleet of 2,000.
void RaiseDescriptorLimit() {
  constexpr rlim_t kWanted = 2 * FleetService::kMostSessions;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kWanted) return;
  limit.rlim_cur = std::min(limit.rlim_max, kWanted);
  setrlimit(RLIMIT_NOFILE, &limit);
}

absl::StatusOr<int> Run(const CoordinatorOptions& options) {
  RaiseDescriptorLimit();
  ASSAY_ASSIGN_OR_RETURN(const Wakes wakes, OpenWakes());
  ASSAY_RETURN_IF_ERROR(CreateStateDir(options.state));
  ASSAY_RETURN_IF_ERROR(CheckStateFiles(options.state));
  ASSAY_ASSIGN_OR_RETURN(const StateLock lock, StateLock::Acquire(options.state));
  ASSAY_ASSIGN_OR_RETURN(Address address, AddressOf(options));
  ASSAY_RETURN_IF_ERROR(CheckSecurity(options, address));
  const SystemClock clock;
  const std::string file = options.state + "/results.db";
  ASSAY_ASSIGN_OR_RETURN(OpenedStore opened, OpenStore(file));
  const absl::Status full = opened.full;
  const auto on_halt = [halt = wakes.halt](const std::string& why) {
    Say(why);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(halt, &one, sizeof(one));
  };
  ASSAY_ASSIGN_OR_RETURN(
      std::unique_ptr<Coordinator> coordinator,
      Coordinator::Start({clock, std::move(opened.store), std::move(opened.reader),
                          TimesOf(options), options.state, on_halt, options.transport},
                         std::move(address)));
  std::unique_ptr<LocalAgent> agent;
  const auto make_ready = [&]() -> absl::Status {
    ASSAY_RETURN_IF_ERROR(
        WriteEndpoint(options.state, {coordinator->address().ToString(), getpid(), kVersion}));
    if (options.local && agent == nullptr && full.ok()) {
      ASSAY_ASSIGN_OR_RETURN(agent, StartAgent(options, coordinator->address()));
    }
    return absl::OkStatus();
  };
  absl::Status status = make_ready();
  // On a full disk results can still be read: commands find the default socket by themselves. An
  // agent's Hello would be a commit that fails, so it is started when there is room.
  const bool waits = absl::IsResourceExhausted(status) && options.listen.empty();
  if (!status.ok() && !waits) return status;
  if (waits || !full.ok()) {
    spdlog::warn("{}; until there is room results can be read only",
                 Message(full.ok() ? status : full));
  }
  spdlog::info("assay-coordinator {} listens on {}", kVersion, coordinator->address().ToString());
  const int code = WaitForEnd(wakes, *coordinator, clock, options.idle_exit_seconds, [&] {
    if (!status.ok()) status = make_ready();
    if (full.ok()) return status.ok() ? Readiness::kReady : Readiness::kWaits;
    // The next coordinator has a whole store again.
    return HasRoom(options.state) ? Readiness::kLeaves : Readiness::kWaits;
  });
  RemoveEndpoint(options.state, getpid());
  // While the server still takes its last reports.
  if (agent != nullptr) agent->Stop();
  coordinator.reset();
  return code;
}

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return kExitNotNow;
    default:
      return kExitCannotStart;
  }
}

int Main(int argc, const char* const* argv) {
  const absl::StatusOr<CoordinatorOptions> options = ParseCoordinatorOptions(argc, argv);
  absl::Status status = options.status();
  if (status.ok() && !options->print.empty()) {
    std::fputs(options->print.c_str(), stdout);
    return kExitOk;
  }
  if (status.ok()) status = InitLog("assay-coordinator", options->log_level);
  if (status.ok()) {
    const absl::StatusOr<int> code = Run(*options);
    if (code.ok()) return *code;
    status = code.status();
  }
  Say(Message(status));
  return ExitCodeOf(status);
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::Main(argc, argv); }
