// The agent with real processes and a fake stream: every way in which a runner, a coordinator or a
// kill can misbehave. Runners are shell scripts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/integration/agent/node_agent_bench.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

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
