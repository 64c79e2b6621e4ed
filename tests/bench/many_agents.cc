// Many agents of one coordinator in one process: the session machine, back-off and gRPC stream of
// assay-agent, each with a connection of its own, without what runs cells.
//
// usage: many_agents --coordinator ADDR --agents N [--cards N]
// Prints "up N" whenever the number of agents with a session has changed, at most ten times a
// second; leaves at the end of standard input. many_agents.py drives it.
#include <sys/epoll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/process/deadline_timer.h"
#include "agent/process/event_loop.h"
#include "agent/session/grpc_fleet.h"
#include "agent/session/out_queue.h"
#include "agent/session/session_machine.h"
#include "common/clock/clock.h"
#include "common/ids/ids.h"
#include "common/net/address.h"
#include "common/status/status.h"
#include "common/version.h"
#include "fmt/format.h"

namespace assay {
namespace {

constexpr std::chrono::milliseconds kSayEvery{100};

// Of a node with `cards` GPUs and the two stacks of an ordinary installation.
NodeInventory InventoryOf(int number, int cards) {
  NodeInventory inventory;
  inventory.node = fmt::format("node-{:04}", number);
  inventory.machine_id = fmt::format("{:032x}", number + 1);
  inventory.boot_id = fmt::format("{:08x}-0000-4000-8000-000000000000", number + 1);
  inventory.agent_version = kVersion;
  inventory.cpu_model = "AMD EPYC 9654 96-Core Processor";
  inventory.cpu_count = 192;
  inventory.memory_bytes = uint64_t{1536} << 30;
  inventory.os = "Debian GNU/Linux 12 (bookworm)";
  for (int card = 0; card < cards; ++card) {
    Device device;
    device.uuid = fmt::format("GPU-{:08x}-{:04x}-4000-8000-000000000000", number, card);
    device.raw_name = number % 2 == 0 ? "NVIDIA GeForce RTX 3090" : "NVIDIA H200";
    device.memory_total_bytes = uint64_t{24} << 30;
    device.cc_major = 8;
    device.cc_minor = 6;
    device.sm_count = 82;
    device.physical_index = card;
    device.pci_bus_id = fmt::format("00000000:{:02X}:00.0", card + 1);
    device.numa_node = card / 4;
    device.driver_version = "580.82.07";
    device.simulated = true;
    inventory.devices.push_back(device);
  }
  for (const char* name : {"libtorch-2.11.0", "simulate-0.1.0"}) {
    Stack stack;
    stack.name = name;
    stack.runner = "assay-simulate";
    stack.versions = {
        {"libtorch", "2.11.0"}, {"cuda", "13.0"}, {"cudnn", "9.19"}, {"nccl", "2.28.9"}};
    stack.models = {"resnet50_v1", "resnet50", "resnext101_32x4d", "se_resnext101_32x4d"};
    stack.modes = {"train", "infer"};
    stack.precisions = {"fp32", "tf32", "amp-fp16", "amp-bf16"};
    stack.lanes = {"eager", "graph"};
    stack.layouts = {"channels-last", "contiguous"};
    stack.arch_list = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};
    stack.device_kinds = {"gpu"};
    stack.max_world_size = 8;
    stack.simulated = true;
    stack.digest = std::string(64, 'a');
    inventory.stacks.push_back(stack);
  }
  return inventory;
}

// The session half of NodeAgent, which alone speaks when no cell runs.
class Member final : public FleetStreamObserver {
 public:
  Member(EventLoop& loop, std::unique_ptr<FleetDialer> dialer, NodeInventory inventory,
         uint64_t seed)
      : loop_(loop),
        dialer_(std::move(dialer)),
        session_(seed),
        timer_(loop, [this] { Perform(session_.OnTick(BootClock::now())); }) {
    hello_.protocol = kFleetProtocol;
    hello_.instance = NewUlid(SystemClock().WallNow());
    hello_.inventory = std::move(inventory);
    hello_.former_gangs_ended = true;
  }

  void Start() { Perform(session_.Start(BootClock::now())); }
  bool up() const { return session_.up(); }

  void OnReceived(CoordinatorMessage message) override {
    const BootTime now = BootClock::now();
    if (const auto* welcome = std::get_if<Welcome>(&message)) {
      Perform(session_.OnWelcome(*welcome, now));
    } else if (const auto* refuse = std::get_if<Refuse>(&message)) {
      std::fprintf(stderr, "%s: %s\n", hello_.inventory.node.c_str(), refuse->message.c_str());
      Perform(session_.OnRefuse(*refuse, now));
    } else if (const auto* ack = std::get_if<HeartbeatAck>(&message)) {
      Perform(session_.OnHeartbeatAck(ack->number, now));
    }
  }
  void OnWritten() override {
    writing_ = false;
    WriteNext();
  }
  void OnClosed(const std::string&) override {
    Close();
    Perform(session_.OnClosed(BootClock::now()));
  }

 private:
  void Perform(const std::vector<SessionAction>& actions) {
    for (const SessionAction& action : actions) {
      if (std::holds_alternative<session_action::Dial>(action)) {
        queue_.Clear();
        writing_ = false;
        stream_ = dialer_->Dial(*this);
      } else if (std::holds_alternative<session_action::Close>(action)) {
        Close();
      } else if (std::holds_alternative<session_action::SendHello>(action)) {
        Queue(hello_);
      } else if (const auto* beat = std::get_if<session_action::SendHeartbeat>(&action)) {
        Queue(Heartbeat{beat->number, {}, false});
      }
    }
    timer_.Set(session_.NextDeadline());
  }

  void Close() {
    queue_.Clear();
    writing_ = false;
    if (stream_ == nullptr) return;
    stream_->Detach();
    std::shared_ptr<FleetStream> dying(std::move(stream_));
    loop_.Post([dying] {});
  }

  void Queue(AgentMessage message) {
    if (stream_ == nullptr) return;
    queue_.Push(std::move(message));
    WriteNext();
  }

  void WriteNext() {
    while (stream_ != nullptr && !writing_) {
      const std::optional<AgentMessage> message = queue_.Pop();
      if (!message) return;
      writing_ = stream_->Write(*message);
    }
  }

  EventLoop& loop_;
  std::unique_ptr<FleetDialer> dialer_;  // outlives the stream
  std::unique_ptr<FleetStream> stream_;
  SessionMachine session_;
  Hello hello_;
  OutQueue queue_;
  bool writing_ = false;
  DeadlineTimer timer_;  // of session_
};

absl::Status Serve(const std::string& coordinator, int agents, int cards) {
  ASSAY_ASSIGN_OR_RETURN(const Address address, ParseAddress(coordinator));
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<EventLoop> loop, EventLoop::Create());
  std::vector<std::unique_ptr<Member>> members;
  for (int number = 0; number < agents; ++number) {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<FleetDialer> dialer, MakeGrpcFleet(*loop, address));
    members.push_back(
        std::make_unique<Member>(*loop, std::move(dialer), InventoryOf(number, cards), number + 1));
    members.back()->Start();
  }
  ASSAY_RETURN_IF_ERROR(loop->Watch(STDIN_FILENO, EPOLLIN, [&loop](uint32_t) { loop->Stop(); }));
  int said = -1;
  std::function<void()> say = [&] {
    int up = 0;
    for (const auto& member : members) up += member->up() ? 1 : 0;
    if (up != said) std::printf("up %d\n", up);
    said = up;
    loop->RunAt(BootClock::now() + kSayEvery, say);
  };
  say();
  loop->Run();
  // Taking 2,000 channels apart one by one says nothing of the coordinator.
  std::fflush(stdout);
  _exit(0);
}

int Main(int argc, char** argv) {
  CLI::App app("Many agents of one coordinator, for a bench", "many_agents");
  std::string coordinator;
  int agents = 2000, cards = 8;
  app.add_option("--coordinator", coordinator)->required();
  app.add_option("--agents", agents);
  app.add_option("--cards", cards, "GPUs of each agent");
  CLI11_PARSE(app, argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::signal(SIGPIPE, SIG_IGN);
  const absl::Status status = Serve(coordinator, agents, cards);
  std::fprintf(stderr, "many_agents: %s\n", Message(status).c_str());
  return 1;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::Main(argc, argv); }
