// The agent with real processes and a fake stream: every way in which a runner, a coordinator or a
// kill can misbehave. Runners are shell scripts.
#include "agent/session/node_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "agent/process/process_table.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

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
    return found;
  }
  std::string program;
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
  std::vector<DeviceFault> faults;
};

class NodeAgentTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    dir_ = testing::TempDir() + "assay_agent_" + std::to_string(::getpid());
    fs::remove_all(dir_);
    fs::create_directories(dir_);
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
    fs::remove_all(dir_);
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
    fs::create_directories(options.host.state_dir);
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
    const BootTime deadline = BootClock::now() + seconds(30);
    while (BootClock::now() < deadline) {
      if (loop_->RunUntil(done, BootClock::now() + milliseconds(20))) return true;
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

TEST_F(NodeAgentTest, RunsOneCellAndKeepsItsReportUntilAcknowledged) {
  Runner("hello; say '{\"record\":\"joined\"}'; ok");
  StartAgent();
  EXPECT_EQ(Sent<Hello>().at(0).inventory.devices.size(), 2u);
  Welcomed();
  const AttemptReport report = RunGang(Order(1));
  ASSERT_EQ(report.ranks.size(), 1u);
  EXPECT_EQ(report.ranks[0].outcome, Outcome::kOk) << report.ranks[0].message;
  EXPECT_EQ(report.ranks[0].fields.Number(Field::kThroughput), 5.5);
  EXPECT_EQ(report.telemetry.Text(Field::kExclusive), "verified");
  EXPECT_TRUE(Wait([&] { return !Sent<SpooledReport>().empty(); }));
  EXPECT_TRUE(fs::exists(dir_ + "/state/spool/01A.pb"));
  EXPECT_TRUE(fs::exists(dir_ + "/state/cells/01A.rank0.json"));
  EXPECT_EQ(Sent<RanksJoined>().size(), 1u);
  dialer_.stream->Deliver(ReportAck{"01A"});
  EXPECT_FALSE(fs::exists(dir_ + "/state/spool/01A.pb"));
  EXPECT_TRUE(fs::is_empty(dir_ + "/state/gangs"));
}

TEST_F(NodeAgentTest, SendsTheReportAgainInTheNextSession) {
  Runner("hello; ok");
  StartAgent();
  Welcomed();
  RunGang(Order(1));
  ASSERT_TRUE(Wait([&] { return Sent<SpooledReport>().size() == 1; }));
  dialer_.stream->Break();
  ASSERT_TRUE(Wait([&] { return dialer_.dials == 2; }));
  EXPECT_THAT(Sent<Hello>().back().spooled_attempts, Contains("01A"));
  Welcomed();
  EXPECT_TRUE(Wait([&] { return Sent<SpooledReport>().size() == 2; }));
}

// Case 1: a cell is a process of its own, so nothing of one that ran out of memory is left.
TEST_F(NodeAgentTest, Case1AnOutOfMemoryCellDoesNotSpoilTheNext) {
  Runner("hello; if [ -e " + dir_ + "/oom ]; then rm " + dir_ +
         "/oom; say '{\"record\":\"result\",\"outcome\":\"mem_limit\",\"reason\":\"out_of_memory\","
         "\"message\":\"full\"}'; exit 3; fi; ok");
  StartAgent();
  Welcomed();
  EXPECT_EQ(RunGang(Order(1, "01A")).ranks.at(0).outcome, Outcome::kOk);
  std::ofstream(dir_ + "/oom") << "x";
  EXPECT_EQ(RunGang(Order(1, "01B")).ranks.at(0).outcome, Outcome::kMemLimit);
  EXPECT_EQ(RunGang(Order(1, "01C")).ranks.at(0).outcome, Outcome::kOk);
}

// Case 2.
TEST_F(NodeAgentTest, Case2AGangWithOneRankOutOfMemoryEndsWholly) {
  Runner(
      "hello; if [ $rank = 1 ]; then say '{\"record\":\"result\",\"outcome\":\"mem_limit\","
      "\"message\":\"full\"}'; exit 3; fi; sleep 100");
  StartAgent();
  Welcomed();
  const AttemptReport report = RunGang(Order(2));
  ASSERT_EQ(report.ranks.size(), 2u);
  EXPECT_EQ(report.ranks[0].outcome, Outcome::kMemLimit);
  EXPECT_THAT(report.ranks[0].message, HasSubstr("rank 1 on GPU-1"));
  EXPECT_LT(report.seconds, 10);
  EXPECT_EQ(Alive("01A"), 0u);
}

// Cases 7, 11 and 23.
TEST_F(NodeAgentTest, Case7RanksGetTheirGpuByUuidAndRankZeroTheListeningSocket) {
  Runner(
      "hello; { echo \"$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER\"; "
      "readlink /proc/self/fd/5; grep -o '\"endpoint\": *\"[^\"]*\"' $cell; } > " +
      dir_ + "/seen$rank; ok");
  StartAgent();
  Welcomed();
  RunGang(Order(2));
  const auto read = [&](const char* name) {
    std::ifstream in(dir_ + name);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_THAT(read("/seen0"), HasSubstr("GPU-0 PCI_BUS_ID"));
  EXPECT_THAT(read("/seen0"), HasSubstr("socket:"));
  EXPECT_THAT(read("/seen1"), HasSubstr("GPU-1 PCI_BUS_ID"));
  EXPECT_THAT(read("/seen1"), testing::Not(HasSubstr("socket:")));
  EXPECT_THAT(read("/seen1"), HasSubstr(Sent<GangReady>().at(0).endpoint));
}

// Case 10: two agents on one host, or two coordinators.
TEST_F(NodeAgentTest, Case10ABusyGpuIsRefusedAndFreeAgainAfterTheCell) {
  Runner("hello; ok");
  StartAgent();
  Welcomed();
  {
    const auto other = DeviceLock::Acquire(dir_ + "/locks", "GPU-0");
    ASSERT_TRUE(other.ok());
    dialer_.stream->Deliver(Order(1));
    ASSERT_TRUE(Wait([&] { return !Sent<GangRefused>().empty(); }));
    EXPECT_EQ(Sent<GangRefused>()[0].reason, "gpu_busy");
  }
  RunGang(Order(1, "01B"));
  EXPECT_TRUE(DeviceLock::Acquire(dir_ + "/locks", "GPU-0").ok());
}

TEST_F(NodeAgentTest, ARankRunsOnTheProcessorsOfItsGpusNodeUnlessThatIsTurnedOff) {
  const std::vector<int> ours = AffinityOf(0);
  if (ours.size() < 2) GTEST_SKIP() << "one processor: a rank cannot have fewer";
  const std::string last = std::to_string(ours.back());
  fs::create_directories(dir_ + "/sys/devices/system/node/node1");
  // Of the two that the node lists this machine has one.
  std::ofstream(dir_ + "/sys/devices/system/node/node1/cpulist") << last << ",8000\n";
  inventory_.devices[0].numa_node = 1;
  Runner("hello; sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status > " + dir_ +
         "/cpus; ok");
  const auto ran_on = [&] {
    std::string cpus;
    std::ifstream(dir_ + "/cpus") >> cpus;
    return cpus;
  };
  for (const bool pin : {true, false}) {
    pin_ = pin;
    StartAgent();
    Welcomed();
    const AttemptReport report = RunGang(Order(1));
    EXPECT_EQ(report.telemetry.Integer(Field::kNumaNode), 1);
    EXPECT_EQ(report.telemetry.Flag(Field::kNumaPinned), pin);
    EXPECT_EQ(report.telemetry.Text(Field::kRankCpus), pin ? last : ListOfCpus(ours));
    EXPECT_EQ(ran_on(), pin ? last : ListOfCpus(ours));
    agent_.reset();
  }
}

TEST_F(NodeAgentTest, AnUncorrectedMemoryErrorSpoilsWhatTheRunnerCalledOk) {
  Runner("hello; ok");
  telemetry_.faults = {{"GPU-0", reason::kEccError, "1 uncorrected ECC errors on GPU-0"}};
  StartAgent();
  Welcomed();
  const AttemptReport report = RunGang(Order(1));
  EXPECT_EQ(report.ranks.at(0).outcome, Outcome::kFail);
  EXPECT_EQ(report.ranks[0].reason, "ecc_error");
}

TEST_F(NodeAgentTest, AnUnknownStackOrDeviceIsRefused) {
  StartAgent();
  Welcomed();
  PrepareOrder order = Order(1);
  order.stack = "other";
  dialer_.stream->Deliver(order);
  order = Order(1, "01B");
  order.members[0].gpu_uuid = "GPU-9";
  dialer_.stream->Deliver(order);
  ASSERT_TRUE(Wait([&] { return Sent<GangRefused>().size() == 2; }));
  EXPECT_EQ(Sent<GangRefused>()[0].reason, "stack_missing");
  EXPECT_EQ(Sent<GangRefused>()[1].reason, "gpu_gone");
  EXPECT_THAT(agent_->HeldAttempts(), IsEmpty());
}

struct Misbehaviour {
  const char* name;
  const char* script;
  Outcome outcome;
  std::string_view reason;
  double silence_seconds = 20;
};

class MisbehaviourTest : public NodeAgentTest, public testing::WithParamInterface<Misbehaviour> {};

TEST_P(MisbehaviourTest, EndsAsItShouldAndLeavesNoProcess) {
  Runner(GetParam().script);
  StartAgent();
  Welcomed();
  PrepareOrder order = Order(1);
  order.spec.limits.no_step_seconds = GetParam().silence_seconds;
  const AttemptReport report = RunGang(order);
  ASSERT_EQ(report.ranks.size(), 1u);
  EXPECT_EQ(report.ranks[0].outcome, GetParam().outcome) << report.ranks[0].message;
  EXPECT_EQ(report.ranks[0].reason, GetParam().reason) << report.ranks[0].message;
  EXPECT_EQ(Alive("01A"), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Runners, MisbehaviourTest,
    testing::Values(
        Misbehaviour{"garbage", "hello; echo garbage >&3; sleep 100", Outcome::kFail,
                     reason::kBadOutput},
        Misbehaviour{"silent_success", "hello; exit 0", Outcome::kFail, reason::kBadOutput},
        Misbehaviour{"closes_records", "hello; exec 3>&-; sleep 100", Outcome::kFail,
                     reason::kBadOutput},
        Misbehaviour{"crash", "hello; kill -SEGV $$", Outcome::kFail, reason::kCrash},
        Misbehaviour{"case22_stopped", "hello; kill -STOP $$; sleep 100", Outcome::kHung,
                     reason::kNoProgress, 2},
        Misbehaviour{"case46_ignores_term", "trap '' TERM; hello; while :; do sleep 1; done",
                     Outcome::kHung, reason::kNoProgress, 2},
        Misbehaviour{"flood", "hello; yes flood | head -c 30000000; ok", Outcome::kOk, ""},
        Misbehaviour{"endless_line", "hello; head -c 3000000 /dev/zero | tr '\\0' x >&3; sleep 100",
                     Outcome::kFail, reason::kBadOutput},
        Misbehaviour{"daemon_left", "hello; setsid sleep 100 & ok; sleep 0.2", Outcome::kOk, ""},
        Misbehaviour{"crash_after_ok", "hello; ok; kill -ABRT $$", Outcome::kFail, reason::kCrash},
        Misbehaviour{"case40_old_driver",
                     "hello; echo 'CUDA driver version is insufficient' >&2; exit 1",
                     Outcome::kUnsupported, reason::kDriverTooOld},
        Misbehaviour{"case24_small_shm",
                     "hello; echo 'posix_fallocate failed: No space left on device' >&2; exit 1",
                     Outcome::kFail, reason::kShmTooSmall}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(NodeAgentTest, ARunnerThatHangsAfterItsResultIsEndedAndTheResultStands) {
  Runner("hello; ok; sleep 100");
  StartAgent();
  Welcomed();
  EXPECT_EQ(RunGang(Order(1)).ranks.at(0).outcome, Outcome::kOk);
  EXPECT_EQ(Alive("01A"), 0u);
}

TEST_F(NodeAgentTest, AnAbortEndsTheTreeAndReportsTheCoordinatorsWord) {
  Runner("hello; sleep 100 & sleep 100");
  StartAgent();
  Welcomed();
  Begin(Order(1));
  ASSERT_TRUE(Wait([&] { return Alive("01A") >= 2; }));
  dialer_.stream->Deliver(AbortOrder{"01A", Outcome::kCancelled, "user_cancelled"});
  ASSERT_TRUE(Wait([&] { return reports_.size() == 1; }));
  EXPECT_EQ(reports_[0].ranks[0].outcome, Outcome::kCancelled);
  EXPECT_EQ(Alive("01A"), 0u);
}

TEST_F(NodeAgentTest, ASessionThatIsCutForLongerThanTheLeaseEndsItsGangs) {
  Runner("hello; sleep 100");
  StartAgent();
  Welcomed(/*lease=*/1);
  Begin(Order(1));
  dialer_.stream->Break();
  ASSERT_TRUE(Wait([&] { return reports_.size() == 1; }));
  EXPECT_EQ(reports_[0].ranks[0].outcome, Outcome::kLost);
  EXPECT_TRUE(fs::exists(dir_ + "/state/spool/01A.pb"));
}

TEST_F(NodeAgentTest, ShutdownEndsGangsSpoolsReportsAndExitsWithZero) {
  Runner("hello; trap '' TERM; while :; do sleep 1; done");
  StartAgent();
  Welcomed();
  Begin(Order(1));
  ASSERT_TRUE(Wait([&] { return Alive("01A") >= 1; }));
  agent_->Shutdown();
  ASSERT_TRUE(Wait([&] { return exit_code_.has_value(); }));
  EXPECT_EQ(*exit_code_, 0);
  EXPECT_EQ(Alive("01A"), 0u);
  EXPECT_TRUE(fs::exists(dir_ + "/state/spool/01A.pb"));
}

TEST_F(NodeAgentTest, ARefusalForGoodExitsWithTwo) {
  StartAgent();
  dialer_.stream->Deliver(Refuse{"duplicate_node", "node is at 10.0.0.1 and 10.0.0.2", false});
  ASSERT_TRUE(exit_code_.has_value());
  EXPECT_EQ(*exit_code_, 2);
  EXPECT_THAT(exit_message_, HasSubstr("10.0.0.2"));
}

// It once waited for fifteen seconds, whenever anything had been running.
TEST_F(NodeAgentTest, ARefusalForGoodExitsAsSoonAsItsGangIsGone) {
  Runner("hello; while :; do sleep 1; done");
  StartAgent();
  Welcomed();
  Begin(Order(1));
  ASSERT_TRUE(Wait([&] { return Alive("01A") >= 1; }));
  const BootTime refused = BootClock::now();
  dialer_.stream->Deliver(Refuse{"duplicate_node", "node is at 10.0.0.1 and 10.0.0.2", false});
  EXPECT_FALSE(exit_code_.has_value());
  ASSERT_TRUE(Wait([&] { return exit_code_.has_value(); }));
  EXPECT_LT(BootClock::now() - refused, seconds(10));
  EXPECT_EQ(*exit_code_, 2);
  EXPECT_THAT(exit_message_, HasSubstr("10.0.0.2"));
  EXPECT_EQ(Alive("01A"), 0u);
  EXPECT_TRUE(fs::exists(dir_ + "/state/spool/01A.pb"));
}

TEST_F(NodeAgentTest, OrdersBeforeWelcomeAreIgnored) {
  StartAgent();
  dialer_.stream->Deliver(Order(1));
  EXPECT_THAT(agent_->HeldAttempts(), IsEmpty());
}

TEST_F(NodeAgentTest, ANewAgentEndsWhatAKilledOneLeftBehind) {
  // A runner whose lifeline nobody holds and that does not look at it.
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setsid();
    const char* const argv[] = {"sleep", "100", nullptr};
    const char* const envp[] = {"ASSAY_ATTEMPT=01OLD/0", nullptr};
    ::execve("/bin/sleep", const_cast<char* const*>(argv), const_cast<char* const*>(envp));
    ::_exit(127);
  }
  ASSERT_TRUE(Wait([] { return Alive("01OLD") == 1; }));
  fs::create_directories(dir_ + "/state/gangs");
  GangFiles files(dir_ + "/state");
  ASSERT_TRUE(files.RecordPids("01OLD", {0}, {}).ok());
  StartAgent();
  EXPECT_EQ(Alive("01OLD"), 0u);
  EXPECT_TRUE(fs::is_empty(dir_ + "/state/gangs"));
  // The first agent of a folder knows of no other that may have run under this node's name.
  EXPECT_FALSE(Sent<Hello>().back().former_gangs_ended);
  GangFiles next(dir_ + "/state");
  EXPECT_TRUE(next.KillFormerGangs(std::chrono::milliseconds(100)).all_ended);
}

}  // namespace
}  // namespace assay
