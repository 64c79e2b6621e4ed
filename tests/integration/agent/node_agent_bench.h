// A NodeAgent with real processes, a fake stream and fake sensors. Runners are shell scripts.
#ifndef ASSAY_TESTS_INTEGRATION_AGENT_NODE_AGENT_BENCH_H_
#define ASSAY_TESTS_INTEGRATION_AGENT_NODE_AGENT_BENCH_H_

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "agent/process/process_table.h"
#include "agent/session/node_agent.h"

namespace assay {

class FakeStream final : public FleetStream {
 public:
  FakeStream(EventLoop& loop, FleetStreamObserver& observer, std::vector<AgentMessage>& sent)
      : loop_(loop), observer_(&observer), sent_(sent) {}
  ~FakeStream() override { Detach(); }
  void Detach() override { *alive_ = false; }
  bool Write(const AgentMessage& message) override {
    sent_.push_back(message);
    loop_.Post([alive = alive_, observer = observer_] {
      if (*alive) observer->OnWritten();
    });
    return true;
  }
  void Deliver(CoordinatorMessage message) { observer_->OnReceived(std::move(message)); }
  void Break() { observer_->OnClosed("cut by the test"); }

 private:
  EventLoop& loop_;
  FleetStreamObserver* observer_;
  std::vector<AgentMessage>& sent_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class FakeDialer final : public FleetDialer {
 public:
  explicit FakeDialer(EventLoop& loop) : loop_(loop) {}
  std::unique_ptr<FleetStream> Dial(FleetStreamObserver& observer) override {
    ++dials;
    auto made = std::make_unique<FakeStream>(loop_, observer, sent);
    stream = made.get();
    return made;
  }
  std::vector<AgentMessage> sent;
  FakeStream* stream = nullptr;
  int dials = 0;

 private:
  EventLoop& loop_;
};

class FakeStacks final : public StackCatalog {
 public:
  absl::StatusOr<StackProgram> Find(const std::string& name) const override {
    if (name != "script") return absl::NotFoundError("no stack " + name);
    StackProgram found;
    found.program = program;
    found.stack = stack;
    return found;
  }
  std::string program;
  Stack stack;
};

class FakeTelemetry final : public DeviceTelemetry {
 public:
  class Session final : public TelemetrySession {
   public:
    explicit Session(std::vector<DeviceFault> faults) : faults_(std::move(faults)) {}
    void WindowBegin() override {}
    void WindowEnd() override {}
    Record Finish(std::span<const ProcessUsage> usage) override {
      Record record;
      record.SetText(Field::kExclusive, usage.empty() ? "unknown" : "verified");
      return record;
    }
    std::vector<DeviceFault> Faults() override { return faults_; }

   private:
    const std::vector<DeviceFault> faults_;
  };
  std::unique_ptr<TelemetrySession> Begin(std::span<const std::string>) override {
    return std::make_unique<Session>(faults);
  }
  // A card that is flat as soon as its load has begun, or never.
  class Heat final : public HeatWatch {
   public:
    explicit Heat(FakeTelemetry& owner) : owner_(owner) {}
    void LoadBegan() override { ++owner_.loads; }
    HeatReading Read() override {
      HeatReading reading;
      reading.sensors = HeatReading::Sensors::kThere;
      reading.celsius = 60;
      reading.flat = owner_.becomes_flat;
      return reading;
    }

   private:
    FakeTelemetry& owner_;
  };
  std::unique_ptr<HeatWatch> WatchHeat(std::span<const std::string>) override {
    return has_heat ? std::make_unique<Heat>(*this) : nullptr;
  }
  bool has_heat = false, becomes_flat = true;
  int loads = 0;
  std::vector<DeviceFault> faults;
};

class NodeAgentTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    dir_ = testing::TempDir() + "assay_agent_" + std::to_string(::getpid());
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
    stacks_.program = dir_ + "/runner";
    inventory_.node = "node";
    for (const char* uuid : {"GPU-0", "GPU-1"}) {
      Device device;
      device.uuid = uuid;
      inventory_.devices.push_back(device);
    }
  }
  void TearDown() override {
    agent_.reset();
    std::filesystem::remove_all(dir_);
  }

  // $cell is the cell file's path, $rank this rank; say writes one record.
  void Runner(const std::string& script) {
    std::ofstream(stacks_.program)
        << "#!/bin/sh\ncell=$2\nrank=${ASSAY_ATTEMPT#*/}\n"
        << "say() { echo \"$1\" >&3; }\n"
        << "hello() { say '{\"record\":\"hello\",\"protocol\":1,\"runner\":\"script\",\"uuid\":\"'"
        << "$(sed -n 's/.*\"uuid\": *\"\\([^\"]*\\)\".*/\\1/p' \"$cell\")'\"}'; }\n"
        << "ok() { say '{\"record\":\"joined\"}'; say "
           "'{\"record\":\"result\",\"outcome\":\"ok\",\"fields\":"
        << "{\"throughput\":5.5}}'; }\n"
        << script << "\n";
    ::chmod(stacks_.program.c_str(), 0755);
  }
  void StartAgent() {
    NodeAgentOptions options;
    options.host.node = "node";
    options.host.state_dir = dir_ + "/state";
    options.host.lock_dir = dir_ + "/locks";
    options.host.endpoint_host = "127.0.0.1";
    options.host.pin = pin_;
    options.host.sys_root = dir_ + "/sys";
    options.host.environment = {{"PATH", "/usr/bin:/bin"}};
    options.instance = "01INSTANCE";
    options.encode = [this](const AttemptReport& report) {
      reports_.push_back(report);
      return "report of " + report.attempt;
    };
    std::filesystem::create_directories(options.host.state_dir);
    agent_ = std::make_unique<NodeAgent>(*loop_, *reaper_, clock_, stacks_, telemetry_, dialer_,
                                         options, [this](int code, const std::string& message) {
                                           exit_code_ = code;
                                           exit_message_ = message;
                                         });
    ASSERT_TRUE(agent_->Start(inventory_).ok());
    ASSERT_NE(dialer_.stream, nullptr);
  }
  void Welcomed(double lease = 30, double grace = 0.3) {
    dialer_.stream->Deliver(Welcome{1, 1, lease / 3, lease, 10, grace, {}});
  }
  PrepareOrder Order(size_t ranks, const std::string& attempt = "01A") {
    PrepareOrder order;
    order.attempt = attempt;
    order.run = "01RUN";
    order.cell = 1;
    order.stack = "script";
    order.prepare_seconds = 30;
    order.spec.limits.no_step_seconds = 20;
    for (size_t i = 0; i < ranks; ++i) {
      order.members.push_back({"node", "GPU-" + std::to_string(i), static_cast<uint32_t>(i)});
    }
    return order;
  }
  bool Wait(const std::function<bool()>& done) {
    // In slices, since what is waited for need not be an event of the loop.
    const BootTime deadline = BootClock::now() + std::chrono::seconds(30);
    while (BootClock::now() < deadline) {
      if (loop_->RunUntil(done, BootClock::now() + std::chrono::milliseconds(20))) return true;
    }
    return false;
  }
  template <class T>
  std::vector<T> Sent() const {
    std::vector<T> found;
    for (const AgentMessage& message : dialer_.sent) {
      if (const auto* match = std::get_if<T>(&message)) found.push_back(*match);
    }
    return found;
  }
  void Begin(const PrepareOrder& order) {
    const size_t before = Sent<GangReady>().size();
    dialer_.stream->Deliver(order);
    ASSERT_TRUE(Wait([&] { return Sent<GangReady>().size() > before; }));
    dialer_.stream->Deliver(StartOrder{order.attempt, Sent<GangReady>().back().endpoint, 30});
  }
  // Runs one gang to its report.
  AttemptReport RunGang(const PrepareOrder& order) {
    const size_t before = reports_.size();
    Begin(order);
    EXPECT_TRUE(Wait([&] { return reports_.size() > before; }));
    return reports_.empty() ? AttemptReport{} : reports_.back();
  }
  static size_t Alive(const std::string& attempt) {
    size_t alive = 0;
    for (const ProcessEntry& entry : ReadProcessTable()) {
      const std::string mark = EnvironmentOf(entry.pid, kMarkVariable).value_or("");
      if (entry.state != 'Z' && mark.starts_with(attempt + "/")) ++alive;
    }
    return alive;
  }

  std::string dir_;
  bool pin_ = true;
  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  std::unique_ptr<OrphanReaper> reaper_ = OrphanReaper::Create(*loop_).value();
  SystemClock clock_;
  FakeStacks stacks_;
  FakeTelemetry telemetry_;
  FakeDialer dialer_{*loop_};
  NodeInventory inventory_;
  std::vector<AttemptReport> reports_;
  std::optional<int> exit_code_;
  std::string exit_message_;
  std::unique_ptr<NodeAgent> agent_;
};

}  // namespace assay

#endif  // ASSAY_TESTS_INTEGRATION_AGENT_NODE_AGENT_BENCH_H_
