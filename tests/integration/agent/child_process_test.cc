// Real children, mostly of /bin/sh, that behave as badly as runners do.
#include "agent/process/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "agent/host/rank_cpus.h"
#include "agent/process/process_table.h"

namespace assay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class Recorder : public ChildObserver {
 public:
  void OnRecords(std::string_view bytes) override { records += bytes; }
  void OnRecordsClosed() override { closed = true; }
  void OnGone(const ChildExit& exit) override {
    end = exit;
    gone = true;
  }
  std::string records;
  bool closed = false;
  bool gone = false;
  ChildExit end;
};

class ChildProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    dir_ = testing::TempDir() + "assay_child_" + std::to_string(::getpid());
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  ChildSpec Shell(const std::string& script) {
    ChildSpec spec;
    spec.program = "/bin/sh";
    spec.arguments = {"-c", script};
    spec.environment = {{"PATH", "/usr/bin:/bin"}};
    spec.mark = "01TEST/0";
    return spec;
  }
  void Start(const ChildSpec& spec) {
    auto child = ChildProcess::Spawn(*loop_, *reaper_, spec, seen_);
    ASSERT_TRUE(child.ok()) << child.status();
    child_ = *std::move(child);
  }
  bool Wait(const std::function<bool()>& done) {
    return loop_->RunUntil(done, BootClock::now() + seconds(30));
  }
  bool WaitGone() {
    return Wait([this] { return seen_.gone; });
  }
  // Processes that carry this test's mark.
  static size_t Alive(const std::string& mark) {
    size_t alive = 0;
    for (const ProcessEntry& entry : ReadProcessTable()) {
      if (entry.state != 'Z' && EnvironmentOf(entry.pid, kMarkVariable) == mark) ++alive;
    }
    return alive;
  }

  std::string dir_;
  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  std::unique_ptr<OrphanReaper> reaper_ = OrphanReaper::Create(*loop_).value();
  Recorder seen_;
  std::unique_ptr<ChildProcess> child_;
};

TEST_F(ChildProcessTest, DeliversRecordsOutputAndExitCode) {
  Start(Shell("echo out; echo err >&2; echo '{}' >&3; exit 7"));
  ASSERT_TRUE(WaitGone());
  EXPECT_EQ(seen_.records, "{}\n");
  EXPECT_THAT(child_->LogTail(), HasSubstr("out\n"));
  EXPECT_THAT(child_->LogTail(), HasSubstr("err\n"));
  EXPECT_EQ(seen_.end.code, 7);
  EXPECT_EQ(seen_.end.signal, 0);
  EXPECT_GT(seen_.end.peak_resident_bytes, 0u);
}

TEST_F(ChildProcessTest, KeepsASignalApartFromAnExitCode) {
  Start(Shell("kill -SEGV $$"));
  ASSERT_TRUE(WaitGone());
  EXPECT_EQ(seen_.end.code, -1);
  EXPECT_EQ(seen_.end.signal, SIGSEGV);
}

TEST_F(ChildProcessTest, RunsOnTheProcessorsThatItIsGivenAndThisProcessOnItsOwn) {
  const std::vector<int> ours = AffinityOf(0);
  ASSERT_FALSE(ours.empty());
  if (ours.size() < 2) GTEST_SKIP() << "one processor: a child cannot have fewer";
  ChildSpec spec = Shell("sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status >&3");
  spec.cpus = {ours.back()};
  Start(spec);
  EXPECT_EQ(AffinityOf(child_->pid()), spec.cpus);
  ASSERT_TRUE(WaitGone());
  EXPECT_EQ(seen_.records, std::to_string(ours.back()) + "\n");
  EXPECT_EQ(AffinityOf(0), ours);
}

TEST_F(ChildProcessTest, StartsAlsoWhereTheProcessorsAreGone) {
  ChildSpec spec = Shell("echo here >&3");
  spec.cpus = {8191};
  Start(spec);
  ASSERT_TRUE(WaitGone());
  EXPECT_EQ(seen_.records, "here\n");
}

TEST_F(ChildProcessTest, SaysWhyAProgramCannotBeStarted) {
  ChildSpec spec = Shell("");
  spec.program = "/no/such/program";
  const auto child = ChildProcess::Spawn(*loop_, *reaper_, spec, seen_);
  EXPECT_EQ(child.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(child.status().message()), HasSubstr("/no/such/program"));
}

TEST_F(ChildProcessTest, InheritsOnlyTheListedDescriptors) {
  int leaked[2];
  ASSERT_EQ(::pipe(leaked), 0);  // without close-on-exec
  ChildSpec spec = Shell("ls /proc/self/fd | tr '\\n' ' ' >&3");
  spec.passed_fds = {-1, leaked[0]};
  Start(spec);
  ASSERT_TRUE(WaitGone());
  // 5 was left closed, so ls got it for the folder it reads.
  EXPECT_EQ(seen_.records, "0 1 2 3 4 5 6 ");
  ::close(leaked[0]);
  ::close(leaked[1]);
}

TEST_F(ChildProcessTest, InheritsNoEnvironmentButTheSpecs) {
  ::setenv("ASSAY_SECRET", "1", 1);
  ChildSpec spec = Shell("env >&3");
  spec.environment["GIVEN"] = "yes";
  Start(spec);
  ASSERT_TRUE(WaitGone());
  EXPECT_THAT(seen_.records, HasSubstr("GIVEN=yes"));
  EXPECT_THAT(seen_.records, HasSubstr("ASSAY_ATTEMPT=01TEST/0"));
  EXPECT_THAT(seen_.records, testing::Not(HasSubstr("ASSAY_SECRET")));
}

// Case 46: a worker that ignores SIGTERM.
TEST_F(ChildProcessTest, Case46KillsAChildThatIgnoresTermAfterTheGrace) {
  Start(Shell("trap '' TERM; echo ready >&3; while :; do sleep 100; done"));
  ASSERT_TRUE(Wait([this] { return !seen_.records.empty(); }));
  const BootTime start = BootClock::now();
  child_->Stop(milliseconds(300));
  ASSERT_TRUE(WaitGone());
  EXPECT_EQ(seen_.end.signal, SIGKILL);
  EXPECT_GE(BootClock::now() - start, milliseconds(290));
  EXPECT_EQ(Alive("01TEST/0"), 0u);
}

TEST_F(ChildProcessTest, GivesAChildThatHandlesTermTheTimeToLeave) {
  Start(Shell("trap 'echo bye >&3; exit 5' TERM; echo ready >&3; while :; do sleep 0.05; done"));
  ASSERT_TRUE(Wait([this] { return !seen_.records.empty(); }));
  child_->Stop(seconds(20));
  ASSERT_TRUE(WaitGone());
  EXPECT_EQ(seen_.end.code, 5);
  EXPECT_THAT(seen_.records, HasSubstr("bye"));
}

// Case 22: a stopped process acts on no signal but CONT and KILL.
TEST_F(ChildProcessTest, Case22EndsAStoppedChild) {
  Start(Shell("echo ready >&3; kill -STOP $$; sleep 100"));
  ASSERT_TRUE(Wait([this] { return !seen_.records.empty(); }));
  child_->Stop(milliseconds(200));
  ASSERT_TRUE(WaitGone());
  EXPECT_NE(seen_.end.signal, 0);
}

TEST_F(ChildProcessTest, KillsGrandchildrenThatOutliveTheirLeader) {
  Start(Shell("sleep 100 & sleep 100 & exit 0"));
  ASSERT_TRUE(WaitGone());
  EXPECT_EQ(seen_.end.code, 0);
  EXPECT_EQ(Alive("01TEST/0"), 0u);
}

TEST_F(ChildProcessTest, KillsADoubleForkedDaemonInASessionOfItsOwn) {
  Start(Shell("setsid sh -c 'sleep 100 & sleep 100' & sleep 0.3; exit 0"));
  ASSERT_TRUE(WaitGone());
  EXPECT_EQ(Alive("01TEST/0"), 0u);
  EXPECT_EQ(seen_.end.survivors, 0u);
}

TEST_F(ChildProcessTest, KillsADaemonThatClearedItsEnvironment) {
  const std::string pid_file = dir_ + "/pid";
  Start(Shell("env -i setsid /bin/sh -c 'echo $$ > " + pid_file +
              "; exec sleep 100' & while ! [ -s " + pid_file + " ]; do sleep 0.02; done; exit 0"));
  ASSERT_TRUE(WaitGone());
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  const auto entry = ReadProcess(pid);
  EXPECT_TRUE(!entry.has_value() || entry->state == 'Z');
}

TEST_F(ChildProcessTest, ReportsTheExitThoughADaemonHoldsThePipes) {
  Start(Shell("setsid sleep 100 & exit 3"));
  ASSERT_TRUE(WaitGone());
  EXPECT_EQ(seen_.end.code, 3);
}

TEST_F(ChildProcessTest, BoundsTheLogAndTheTailOfAChildThatFloodsItsOutput) {
  ChildSpec spec = Shell("yes xxxxxxx | head -c 20000000; echo END");
  spec.log_path = dir_ + "/log";
  Start(spec);
  ASSERT_TRUE(WaitGone());
  EXPECT_LE(child_->LogTail().size(), kLogTailBytes + 100);
  EXPECT_GT(child_->LogTail().size(), kLogTailBytes / 2);
  EXPECT_THAT(child_->LogTail(), testing::EndsWith("x\nEND\n"));
  EXPECT_LE(std::filesystem::file_size(spec.log_path), kLogFileBytes + 100);
}

TEST_F(ChildProcessTest, TellsThatTheRecordsWereClosedEarly) {
  Start(Shell("exec 3>&-; sleep 100"));
  EXPECT_TRUE(Wait([this] { return seen_.closed; }));
  EXPECT_FALSE(seen_.gone);
  child_->Stop(milliseconds(0));
  EXPECT_TRUE(WaitGone());
}

TEST_F(ChildProcessTest, BeatsTheLifelineUntilTheEnd) {
  ChildSpec spec = Shell("head -c 3 <&4 >&3");
  spec.lifeline_interval = milliseconds(20);
  Start(spec);
  ASSERT_TRUE(WaitGone());
  EXPECT_EQ(seen_.records, "...");
}

TEST_F(ChildProcessTest, DestructionKillsAndReapsARunningChild) {
  Start(Shell("trap '' TERM; sleep 100"));
  const pid_t pid = child_->pid();
  child_.reset();
  EXPECT_FALSE(ReadProcess(pid).has_value());
  EXPECT_FALSE(seen_.gone);
}

TEST_F(ChildProcessTest, NoSiblingHoldsTheLifelineOpen) {
  Start(Shell("cat <&4 >/dev/null; echo eof >&3"));
  Recorder other;
  ChildSpec spec = Shell("ls -l /proc/self/fd | grep -c pipe >&3");
  auto sibling = ChildProcess::Spawn(*loop_, *reaper_, spec, other);
  ASSERT_TRUE(sibling.ok());
  ASSERT_TRUE(Wait([&] { return other.gone; }));
  // Its own: standard output is grep's pipe, standard error, records, lifeline.
  EXPECT_EQ(other.records, "4\n");
}

TEST_F(ChildProcessTest, PassesABoundSocketAsFive) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  ChildSpec spec = Shell("echo hello >&5");
  spec.passed_fds = {pair[1]};
  Start(spec);
  ASSERT_TRUE(WaitGone());
  char buffer[16];
  EXPECT_EQ(::read(pair[0], buffer, sizeof buffer), 6);
  ::close(pair[0]);
  ::close(pair[1]);
}

}  // namespace
}  // namespace assay
