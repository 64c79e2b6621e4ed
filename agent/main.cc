// assay-agent: dials a coordinator, says what this node has, and runs its part of gangs. With
// --doctor it says what works on this node and leaves, with --doctor-runner whether a program keeps
// the protocol of runners (docs/doctor.md).
//
// Exit codes: with --doctor and --doctor-runner 1 where something is bad, else 0; 0 stopped by
// SIGTERM or SIGINT with every process of its gangs gone; 2 bad options, state directory in use, or
// refused by the coordinator for good; 1 anything else.
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "agent/cell/device_lock.h"
#include "agent/cell/endpoint.h"
#include "agent/conformance/check_runner.h"
#include "agent/doctor/run_doctor.h"
#include "agent/inventory/local_inventory.h"
#include "agent/inventory/stack_manifests.h"
#include "agent/process/child_process.h"
#include "agent/session/grpc_fleet.h"
#include "agent/session/node_agent.h"
#include "agent/telemetry/deadline_nvml.h"
#include "agent/telemetry/fake_nvml.h"
#include "agent/telemetry/node_telemetry.h"
#include "agent/telemetry/nvml_library.h"
#include "common/catalog/card_catalog.h"
#include "common/certs/tls_check.h"
#include "common/config/settings.h"
#include "common/ids/ids.h"
#include "common/log/log.h"
#include "common/net/sibling.h"
#include "common/net/state_dir.h"
#include "common/status/status.h"
#include "common/version.h"

namespace assay {
namespace {

constexpr int kExitBadInput = 2;

struct Options {
  std::vector<std::string> doctor;  // arguments of the checks that a coordinator asks for
  std::string node;
  std::string stacks;
  std::string devices;
  Transport transport;
  bool exit_with_parent = false;
  bool pin = true;
};

struct CommandLine {
  CLI::App app{"Runs cells of Assay on this node", "assay-agent"};
  std::map<std::string, std::string> texts;
  bool exit_with_parent = false;
  bool insecure = false;
  bool print_config = false;
  bool doctor = false;
  bool measuring = false;
  std::string doctor_runner;
  int64_t cell_seconds = 120;
  int doctor_fd = STDOUT_FILENO;

  CommandLine() {
    app.set_version_flag("--version", std::string("assay-agent ") + kVersion);
    const auto add = [&](const std::string& name, const char* doc) {
      app.add_option("--" + name, texts[name], doc);
    };
    add("config", "Configuration file (ASSAY_CONFIG; default: config.yaml of the state directory)");
    add("coordinator", "unix:PATH or HOST:PORT (ASSAY_COORDINATOR)");
    add("tls-ca", "Certificate of the authority that signed the coordinator's (ASSAY_TLS_CA)");
    add("tls-cert", "Certificate of this node, by `assay certs agent NODE` (ASSAY_TLS_CERT)");
    add("tls-key", "Its key (ASSAY_TLS_KEY)");
    app.add_flag("--insecure", insecure,
                 "Plain text to another machine: all on the way can read and change it");
    add("state", "Folder for spool, logs and cell files (ASSAY_STATE)");
    add("node", "Name of this node (ASSAY_NODE; default: the host's)");
    add("stacks", "Folder of stack manifests (ASSAY_STACKS)");
    add("devices",
        "auto, cpu, UUIDs, or a file with a captured NVML (simulated devices) (ASSAY_DEVICES)");
    add("pin", "true or false: run a rank on the processors of its GPU's NUMA node (ASSAY_PIN)");
    add("log-level", "debug, info, warn or error (ASSAY_LOG_LEVEL)");
    app.add_flag("--exit-with-parent", exit_with_parent,
                 "Stop when the process that started this one ends");
    app.add_flag("--doctor", doctor, "Print what works on this node as JSON, and leave");
    app.add_option("--doctor-runner", doctor_runner,
                   "Print whether this program, or the one of this stack manifest, keeps the "
                   "protocol of runners, and leave")
        ->type_name("PROGRAM");
    app.add_option("--cell-seconds", cell_seconds,
                   "With --doctor-runner: how long one small cell may take (default 120)")
        ->check(CLI::Range(1, 3600))
        ->needs("--doctor-runner");
    app.add_option("--doctor-fd", doctor_fd, "Descriptor for that report")->group("");
    app.add_flag("--measuring", measuring, "With --doctor: start no program beside a cell")
        ->group("");
    app.add_flag("--print-config", print_config,
                 "Print every value and where it came from, and leave");
  }
};

absl::StatusOr<Settings> Resolved(const CommandLine& line) {
  Settings settings(Program::kAgent, [](const char* name) { return std::getenv(name); });
  for (const auto& [name, value] : line.texts) {
    if (line.app.get_option("--" + name)->count() > 0) settings.SetFlag(name, {value});
  }
  if (line.app.get_option("--insecure")->count() > 0) {
    settings.SetFlag("insecure", {line.insecure ? "true" : "false"});
  }
  ASSAY_RETURN_IF_ERROR(settings.Resolve());
  return settings;
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "assay-agent: %s\n", Message(status).c_str());
  return code;
}

// SIGTERM and SIGINT as events of the loop. Blocked before any thread starts.
absl::StatusOr<UniqueFd> BlockStopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  UniqueFd fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, "cannot watch for signals");
  return fd;
}

// Null for a node whose GPUs are not asked for. The captured one answers at once.
absl::StatusOr<std::unique_ptr<Nvml>> MakeNvml(std::string& devices) {
  if (devices == "cpu") return std::unique_ptr<Nvml>();
  if (devices.find('/') != std::string::npos || ::access(devices.c_str(), R_OK) == 0) {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<FakeNvml> captured, FakeNvml::Load(devices));
    devices = "auto";
    return std::unique_ptr<Nvml>(std::move(captured));
  }
  return std::unique_ptr<Nvml>(std::make_unique<DeadlineNvml>(std::make_unique<NvmlLibrary>()));
}

std::string EndpointHost(const Address& coordinator) {
  if (coordinator.kind == Address::Kind::kUnix) return "127.0.0.1";
  return LocalAddressTowards(coordinator.host, coordinator.port);
}

// Watches the parent by pidfd; a signal at the parent's death comes at the death of its thread
// only.
absl::Status ExitWithParent(EventLoop& loop, UniqueFd& pidfd, const std::function<void()>& stop) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
  const pid_t parent = ::getppid();
  pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, parent, 0)));
  if (!pidfd) return ErrnoStatus(errno, "the parent is gone");
  return loop.Watch(pidfd.get(), EPOLLIN, [&loop, &pidfd, stop](uint32_t) {
    loop.Unwatch(pidfd.get());
    spdlog::info("the parent process ended");
    stop();
  });
}

// What is wrong with how this agent would dial, before it does.
absl::Status CheckSecurity(const Transport& transport, const Address& address,
                           const std::string& node) {
  if (transport.IsOpen(address)) {
    spdlog::warn("--insecure: plain text to {}: all on the way can read and change it",
                 address.ToString());
  }
  if (!transport.UsesTls(address)) return absl::OkStatus();
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  ASSAY_ASSIGN_OR_RETURN(const TlsReport report,
                         CheckTlsFiles(transport.tls, Identity::Kind::kAgent, now));
  for (const std::string& warning : report.warnings) spdlog::warn("{}", warning);
  if (report.identity.name == node) return absl::OkStatus();
  return absl::InvalidArgumentError("the certificate " + transport.tls.certificate +
                                    " is for node " + report.identity.name + " and this node is " +
                                    node + ": start it with --node " + report.identity.name +
                                    ", or make one with `assay certs agent " + node + "`");
}

InventoryOptions InventoryOptionsOf(const Options& options) {
  InventoryOptions inventory;
  inventory.node = options.node;
  inventory.agent_version = kVersion;
  inventory.devices = options.devices;
  inventory.stacks_dir = options.stacks.empty() ? DefaultStacksDir() : options.stacks;
  inventory.environment = ProcessEnvironment();
  return inventory;
}

// `address` outlives the agent.
NodeAgentOptions AgentOptionsOf(const Options& options, const std::string& node,
                                const std::string& state, const Address& address,
                                const Clock& clock) {
  NodeAgentOptions agent;
  agent.host.node = node;
  agent.host.state_dir = state;
  agent.host.lock_dir = DeviceLockDir();
  agent.host.endpoint_host = "127.0.0.1";
  agent.host.environment = ProcessEnvironment();
  agent.host.card_name = [](const Device& device) { return IdentifyDevice(device).name; };
  agent.host.pin = options.pin;
  agent.instance = NewUlid(clock.WallNow());
  agent.seed = std::random_device()();
  agent.encode = EncodeReport;
  agent.endpoint_host = [&address] { return EndpointHost(address); };
  const absl::StatusOr<std::string> self = SiblingProgram("assay-agent");
  if (self.ok()) agent.doctor.program = *self;
  agent.doctor.arguments = options.doctor;
  agent.doctor.environment = ProcessEnvironment();
  return agent;
}

absl::StatusOr<int> RunAgent(Options options, const std::string& state, const Address& address) {
  ASSAY_ASSIGN_OR_RETURN(UniqueFd signals, BlockStopSignals());
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<EventLoop> loop, EventLoop::Create());
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<OrphanReaper> reaper, OrphanReaper::Create(*loop));
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<Nvml> nvml, MakeNvml(options.devices));
  LocalInventory inventory(InventoryOptionsOf(options), nvml.get());
  const NodeInventory collected = inventory.Collect();
  if (const absl::Status secure = CheckSecurity(options.transport, address, collected.node);
      !secure.ok()) {
    return Fail(secure, kExitBadInput);
  }
  for (const std::string& warning : collected.warnings) spdlog::warn("{}", warning);
  spdlog::info("node {} has {} devices and {} stacks", collected.node, collected.devices.size(),
               collected.stacks.size());

  const SystemClock clock;
  NodeTelemetry telemetry(nvml.get(), &clock);
  telemetry.SetDevices(collected);
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<FleetDialer> dialer,
                         MakeGrpcFleet(*loop, address, options.transport));
  int exit_code = 0;
  NodeAgent agent(*loop, *reaper, clock, inventory, telemetry, *dialer,
                  AgentOptionsOf(options, collected.node, state, address, clock),
                  [&](int code, const std::string& message) {
                    if (!message.empty())
                      std::fprintf(stderr, "assay-agent: %s\n", message.c_str());
                    exit_code = code;
                    loop->Stop();
                  });
  UniqueFd parent;
  if (options.exit_with_parent) {
    ASSAY_RETURN_IF_ERROR(ExitWithParent(*loop, parent, [&agent] { agent.Shutdown(); }));
  }
  ASSAY_RETURN_IF_ERROR(loop->Watch(signals.get(), EPOLLIN, [&](uint32_t) {
    signalfd_siginfo info;
    while (::read(signals.get(), &info, sizeof info) == sizeof info) {
    }
    agent.Shutdown();
  }));
  ASSAY_RETURN_IF_ERROR(agent.Start(collected));
  loop->Run();
  return exit_code;
}

// Takes no lock and dials nobody: an agent may run on the same state directory.
int Doctor(const CommandLine& line, const Settings& settings) {
  std::string devices = settings.Text("devices");
  const absl::StatusOr<std::unique_ptr<Nvml>> nvml = MakeNvml(devices);
  if (!nvml.ok()) return Fail(nvml.status(), kExitBadInput);
  GatherOptions options;
  options.node = settings.Text("node");
  options.version = kVersion;
  options.devices = devices;
  options.stacks_dir =
      settings.Text("stacks").empty() ? DefaultStacksDir() : settings.Text("stacks");
  const absl::StatusOr<std::string> state = ResolveStateDir(settings.Text("state"));
  if (state.ok()) {
    options.state_dir = settings.Source("state") == "--state" ? *state : *state + "/agent";
  } else {
    options.state_dir_error = Message(state.status());
  }
  options.lock_dir = DeviceLockDir();
  options.environment = ProcessEnvironment();
  options.measuring = line.measuring;
  const absl::StatusOr<int> code = RunDoctor(options, nvml->get(), line.doctor_fd);
  return code.ok() ? *code : Fail(code.status(), kExitBadInput);
}

// Of the machine it needs a GPU only where the runner does.
int DoctorRunner(const CommandLine& line, const Settings& settings) {
  ::signal(SIGPIPE, SIG_IGN);
  std::string devices = settings.Text("devices");
  const absl::StatusOr<std::unique_ptr<Nvml>> nvml = MakeNvml(devices);
  if (!nvml.ok()) return Fail(nvml.status(), kExitBadInput);
  const absl::StatusOr<DoctorReport> report =
      CheckRunner({.runner = line.doctor_runner,
                   .cell_limit = std::chrono::seconds(line.cell_seconds),
                   .version = kVersion,
                   .lock_dir = DeviceLockDir(),
                   .environment = ProcessEnvironment()},
                  nvml->get());
  if (!report.ok()) return Fail(report.status(), kExitBadInput);
  const absl::StatusOr<int> code = WriteDoctorReport(*report, line.doctor_fd);
  return code.ok() ? *code : Fail(code.status(), kExitBadInput);
}

int Main(int argc, char** argv) {
  CommandLine line;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::Success& said) {
    return line.app.exit(said);
  } catch (const CLI::ParseError& error) {
    return Fail(absl::InvalidArgumentError(error.what()), kExitBadInput);
  }
  const absl::StatusOr<Settings> settings = Resolved(line);
  if (!settings.ok()) return Fail(settings.status(), kExitBadInput);
  if (line.print_config) {
    std::fputs(settings->Printed().c_str(), stdout);
    return 0;
  }
  if (line.doctor) return Doctor(line, *settings);
  if (line.app.get_option("--doctor-runner")->count() > 0) return DoctorRunner(line, *settings);
  Options options = {{},
                     settings->Text("node"),
                     settings->Text("stacks"),
                     settings->Text("devices"),
                     TransportOf(*settings),
                     line.exit_with_parent,
                     settings->Flag("pin")};
  if (const absl::Status log = InitLog("assay-agent", settings->Text("log-level")); !log.ok()) {
    return Fail(log, kExitBadInput);
  }
  if (settings->Text("coordinator").empty()) {
    return Fail(
        absl::InvalidArgumentError("say which coordinator: --coordinator unix:/path or HOST:PORT"),
        kExitBadInput);
  }
  const absl::StatusOr<Address> address = ParseAddress(settings->Text("coordinator"));
  if (!address.ok()) return Fail(address.status(), kExitBadInput);
  if (const absl::Status allowed = CheckTransport(options.transport, *address); !allowed.ok()) {
    return Fail(allowed, kExitBadInput);
  }
  // By default a folder of its own: the state directory itself is a coordinator's.
  absl::StatusOr<std::string> state = ResolveStateDir(settings->Text("state"));
  if (!state.ok()) return Fail(state.status(), kExitBadInput);
  if (settings->Source("state") != "--state") *state += "/agent";
  if (const absl::Status made = CreateStateDir(*state); !made.ok())
    return Fail(made, kExitBadInput);
  const absl::StatusOr<StateLock> lock = StateLock::Acquire(*state);
  if (!lock.ok()) return Fail(lock.status(), kExitBadInput);
  options.doctor = {"--doctor",  "--doctor-fd",  std::to_string(kRecordsFd), "--state", *state,
                    "--devices", options.devices};
  if (!options.node.empty()) options.doctor.insert(options.doctor.end(), {"--node", options.node});
  if (!options.stacks.empty()) {
    options.doctor.insert(options.doctor.end(), {"--stacks", options.stacks});
  }
  const absl::StatusOr<int> code = RunAgent(options, *state, *address);
  return code.ok() ? *code : Fail(code.status(), 1);
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::Main(argc, argv); }
