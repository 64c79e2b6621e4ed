// run, rerun, watch, cancel: exit codes, Ctrl-C, pipes and terminals.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli_fixture.h"
#include "common/clock/clock.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CliRun : public CliTest {
 protected:
  static bool WaitFor(const std::function<bool()>& holds) {
    const BootTime until = BootClock::now() + std::chrono::seconds(30);
    while (!holds() && BootClock::now() < until) usleep(10'000);
    return holds();
  }
  FakeControl& ServeHeld(bool hold_cancel = false) {
    FakeScript script;
    script.hold = true;
    script.hold_cancel = hold_cancel;
    return Serve(script);
  }
  // A command, once it follows a run that goes on until Release().
  std::unique_ptr<AssayProcess> Following(const std::vector<std::string>& words,
                                          std::vector<std::string> environment = {}) {
    auto child = std::make_unique<AssayProcess>(words, Options(std::move(environment)));
    EXPECT_TRUE(WaitFor([this] { return server_->control().watches() > 0; }));
    return child;
  }
};

TEST_F(CliRun, PrintsTheIdFirstThenTheTable) {
  Serve();
  const Finished done = Assay({"run", Matrix()});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, StartsWith(std::string("run ") + kRunId + "\n"));
  EXPECT_THAT(done.out, HasSubstr("img/s"));
  EXPECT_THAT(done.out, HasSubstr("801.5"));
  EXPECT_THAT(done.out, HasSubstr("2 cells: 2 ok"));
  EXPECT_THAT(done.err, HasSubstr("a warning of the coordinator"));
}

TEST_F(CliRun, JsonIsADocumentOfItsOwnWithTheIdOnStandardError) {
  Serve();
  const Finished done = Assay({"run", Matrix(), "--format", "json"});
  EXPECT_EQ(done.code, 0) << done.err;
  const auto rows = nlohmann::json::parse(done.out, nullptr, false);
  ASSERT_TRUE(rows.is_array()) << done.out;
  EXPECT_EQ(rows.size(), 2u);
  // Case 53: a peer's not-a-number is null.
  EXPECT_TRUE(rows[0].at("step_p99_ms").is_null());
  EXPECT_THAT(done.err, HasSubstr(std::string("run ") + kRunId));
}

TEST_F(CliRun, QuietPrintsOnlyIdAndTable) {
  Serve();
  const Finished done = Assay({"run", Matrix(), "--quiet"});
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.err, "");
  EXPECT_THAT(done.out, StartsWith("run "));
}

// Case 45: distinct exit codes.
TEST_F(CliRun, OneFailedCellOfTenIsExitOneAndNamedLast) {
  FakeScript script;
  script.outcomes = std::vector<std::string>(9, "ok");
  script.outcomes.push_back("fail");
  Serve(script);
  const Finished done = Assay({"run", Matrix()});
  EXPECT_EQ(done.code, 1);
  const std::string last = done.err.substr(done.err.rfind('\n', done.err.size() - 2) + 1);
  EXPECT_THAT(last, HasSubstr("cell 10"));
  EXPECT_THAT(last, HasSubstr("it broke"));
}

TEST_F(CliRun, EveryCellFailedIsExitThree) {
  FakeScript script;
  script.outcomes = {"fail", "hung", "timeout", "lost"};
  Serve(script);
  const Finished done = Assay({"run", Matrix()});
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("cell 4"));
  EXPECT_THAT(done.err, HasSubstr("no cell ended ok"));
  EXPECT_THAT(done.out, HasSubstr("fail: crash"));
  EXPECT_THAT(done.out, Not(HasSubstr("-1")));
}

TEST_F(CliRun, OutOfMemoryBesideOkIsNoFailure) {
  FakeScript script;
  script.outcomes = {"ok", "mem_limit", "unsupported"};
  Serve(script);
  const Finished done = Assay({"run", Matrix()});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("mem_limit"));
}

TEST_F(CliRun, NoCellOkIsExitThreeWithWhy) {
  FakeScript script;
  script.outcomes = {"unsupported", "mem_limit"};
  Serve(script);
  const Finished done = Assay({"run", Matrix()});
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("nothing was measured"));
}

TEST_F(CliRun, NoAgentIsExitThreeWithWhatItWaitedFor) {
  FakeScript script;
  script.outcomes = {};
  Serve(script);
  const Finished done = Assay({"run", Matrix()});
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("no agent has connected"));
}

TEST_F(CliRun, ABadMatrixIsExitTwoAndAsksNobody) {
  FakeControl& control = Serve();
  const Finished done = Assay({"run", Write("bad.yaml", "axes:\n  model: [resnet51]\n")});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("resnet50"));
  EXPECT_THAT(done.err, HasSubstr("bad.yaml:2"));
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(control.submits(), 0);
  EXPECT_EQ(Assay({"run", dir_ + "/missing.yaml"}).code, 2);
  EXPECT_EQ(Assay({"run", dir_}).code, 2);
}

TEST_F(CliRun, ACoordinatorThatRefusesTheMatrixIsExitTwo) {
  FakeScript script;
  script.refuse_submit = "m.yaml:1:1: a newer rule";
  Serve(script);
  const Finished done = Assay({"run", Matrix()});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("a newer rule"));
}

TEST_F(CliRun, TheMatrixMayComeFromStandardInput) {
  Serve();
  ProcessOptions options = Options();
  options.input = kMatrix;
  EXPECT_EQ(RunAssay({"run", "-", "--quiet"}, options).code, 0);
}

TEST_F(CliRun, NoCoordinatorAtTheAddressIsExitThree) {
  const Finished done = Assay({"ls", "--coordinator", "unix:" + dir_ + "/none.sock"});
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("no coordinator answers"));
}

TEST_F(CliRun, DetachLeavesAtOnceAndWatchFollows) {
  FakeControl& control = ServeHeld();
  const Finished done = Assay({"run", Matrix(), "--detach"});
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.out, std::string("run ") + kRunId + "\n");
  const auto watch = Following({"watch", "last"});
  control.Release();
  const Finished watched = watch->Wait();
  EXPECT_EQ(watched.code, 0) << watched.err;
  EXPECT_THAT(watched.out, HasSubstr("2 cells: 2 ok"));
}

TEST_F(CliRun, AnUnfinishedRunOfTheSameMatrixGoesOnAndSaysSo) {
  FakeControl& control = ServeHeld();
  Assay({"run", Matrix(), "--detach"});
  const Finished again = Assay({"run", Matrix(), "--detach"});
  EXPECT_THAT(again.out, HasSubstr(kRunId));
  EXPECT_THAT(again.err, HasSubstr("goes on"));
  const Finished fresh = Assay({"run", Matrix(), "--detach", "--new"});
  EXPECT_THAT(fresh.out, Not(HasSubstr(kRunId)));
  control.Release();
}

TEST_F(CliRun, ALostCoordinatorIsConnectedAgain) {
  FakeScript script;
  script.break_watches = 1;
  FakeControl& control = Serve(script);
  const Finished done = Assay({"run", Matrix()});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(control.watches(), 2);
  EXPECT_THAT(done.err, HasSubstr("connecting again"));
}

TEST_F(CliRun, ACoordinatorThatStaysAwayIsExitThreeAndSaysHowToGoOn) {
  ServeHeld();
  const auto child = Following({"run", Matrix(), "--coordinator", server_->address()});
  ASSERT_TRUE(child->WaitForText("run 01J"));
  server_.reset();
  const Finished done = child->Wait();
  EXPECT_EQ(done.code, 3) << done.err;
  EXPECT_THAT(done.err, HasSubstr("run the same command again"));
}

TEST_F(CliRun, CtrlCCancelsWaitsAndPrintsWhatWasMeasured) {
  FakeControl& control = ServeHeld(/*hold_cancel=*/true);
  const auto child = Following({"run", Matrix()});
  child->Signal(SIGINT);
  ASSERT_TRUE(child->WaitForText("Ctrl-C again"));
  ASSERT_TRUE(WaitFor([&] { return control.cancels() > 0; }));
  // It waits for the end of every process, which Watch has not said yet.
  EXPECT_EQ(child->out().find("cancelled"), std::string::npos);
  control.Release();
  const Finished done = child->Wait();
  EXPECT_EQ(done.code, 130) << done.err;
  EXPECT_EQ(control.cancels(), 1);
  EXPECT_THAT(done.out, HasSubstr("800.5"));
  EXPECT_THAT(done.out, HasSubstr("cancelled"));
}

TEST_F(CliRun, ASecondCtrlCLeavesAtOnceAndSaysWhatGoesOn) {
  ServeHeld(/*hold_cancel=*/true);
  const auto child = Following({"run", Matrix()});
  child->Signal(SIGINT);
  ASSERT_TRUE(child->WaitForText("Ctrl-C again"));
  child->Signal(SIGINT);
  const Finished done = child->Wait(std::chrono::seconds(5));
  EXPECT_EQ(done.code, 130);
  EXPECT_THAT(done.err, HasSubstr("goes on cancelling"));
  EXPECT_THAT(done.out, Not(HasSubstr("img/s")));
}

TEST_F(CliRun, SigtermCancelsWaitsAndPrintsWhatWasMeasuredHoweverOftenItComes) {
  FakeControl& control = ServeHeld(/*hold_cancel=*/true);
  const auto child = Following({"run", Matrix()});
  child->Signal(SIGTERM);
  ASSERT_TRUE(WaitFor([&] { return control.cancels() > 0; }));
  child->Signal(SIGTERM);
  control.Release();
  const Finished done = child->Wait();
  EXPECT_EQ(done.code, 143) << done.err;
  EXPECT_EQ(control.cancels(), 1);
  EXPECT_THAT(done.out, HasSubstr("800.5"));
  EXPECT_THAT(done.out, HasSubstr("cancelled"));
}

TEST_F(CliRun, AHangUpLeavesTheRunAloneAndSaysSo) {
  FakeControl& control = ServeHeld();
  const auto child = Following({"run", Matrix()});
  child->Signal(SIGHUP);
  const Finished done = child->Wait();
  EXPECT_EQ(done.code, 128 + SIGHUP);
  EXPECT_THAT(done.err, HasSubstr(std::string("run ") + kRunId + " goes on"));
  EXPECT_EQ(control.cancels(), 0);
}

TEST_F(CliRun, SigtermEndsAWatcherAtOnce) {
  FakeControl& control = ServeHeld();
  control.AddRun(kRunId, "held");
  const auto child = Following({"watch", "last"});
  child->Signal(SIGTERM);
  EXPECT_EQ(child->Wait(std::chrono::seconds(10)).code, 143);
  EXPECT_EQ(control.cancels(), 0);
}

TEST_F(CliRun, CtrlCOfAWatcherLeavesTheRunAlone) {
  FakeControl& control = ServeHeld();
  control.AddRun(kRunId, "held");
  const auto child = Following({"watch", "last"});
  child->Signal(SIGINT);
  const Finished done = child->Wait();
  EXPECT_EQ(done.code, 130);
  EXPECT_EQ(control.cancels(), 0);
  EXPECT_THAT(done.err, HasSubstr("goes on"));
}

TEST_F(CliRun, CancelWaitsForTheEndAndWatchThenSays130) {
  FakeControl& control = ServeHeld();
  control.AddRun(kRunId, "held");
  const Finished cancelled = Assay({"cancel", "last"});
  EXPECT_EQ(cancelled.code, 0) << cancelled.err;
  EXPECT_THAT(cancelled.out, HasSubstr("is cancelled: 1 ok, 1 cancelled"));
  EXPECT_EQ(Assay({"watch", kRunId}).code, 130);
}

TEST_F(CliRun, RerunFollowsTheRun) {
  FakeControl& control = Serve();
  control.AddRun(kRunId, "done");
  const Finished done = Assay({"rerun", "last", "--failed"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, StartsWith(std::string("run ") + kRunId));
}

TEST_F(CliRun, APipeGetsPlainLines) {
  FakeControl& control = ServeHeld();
  const auto child = Following({"run", Matrix()}, {"TERM=xterm"});
  control.Release();
  const Finished done = child->Wait();
  EXPECT_EQ(done.out.find('\x1B'), std::string::npos);
  EXPECT_EQ(done.err.find('\x1B'), std::string::npos);
}

TEST_F(CliRun, ATerminalGetsABlockAndItsCursorBack) {
  FakeControl& control = ServeHeld();
  ProcessOptions options = Options();
  options.terminal = true;
  AssayProcess child({"run", Matrix()}, options);
  ASSERT_TRUE(child.WaitForText("step 120"));
  EXPECT_THAT(child.out(), HasSubstr("\x1B[?25l"));
  EXPECT_THAT(child.out(), HasSubstr("1/2 cells"));
  control.Release();
  const Finished done = child.Wait();
  EXPECT_EQ(done.code, 0);
  EXPECT_THAT(done.out, HasSubstr("\x1B[?25h"));
  EXPECT_GT(done.out.rfind("\x1B[?25h"), done.out.rfind("\x1B[?25l"));
}

TEST_F(CliRun, TheCursorComesBackWhateverEndsTheProgram) {
  ServeHeld(/*hold_cancel=*/true);
  for (const int number : {SIGQUIT, SIGHUP}) {
    ProcessOptions options = Options();
    options.terminal = true;
    AssayProcess child({"run", Matrix()}, options);
    ASSERT_TRUE(child.WaitForText("step 120"));
    child.Signal(number);
    const Finished done = child.Wait();
    EXPECT_EQ(done.code, 128 + number);
    EXPECT_GT(done.out.rfind("\x1B[?25h") + 1, done.out.rfind("\x1B[?25l") + 1);
  }
}

TEST_F(CliRun, NoColorOnATerminalMeansNone) {
  FakeScript script;
  script.outcomes = {"ok", "fail"};
  Serve(script);
  ProcessOptions options = Options({"NO_COLOR=1"});
  options.terminal = true;
  const Finished plain = RunAssay({"run", Matrix()}, options);
  EXPECT_THAT(plain.out, Not(HasSubstr("\x1B[31m")));
  options = Options();
  options.terminal = true;
  EXPECT_THAT(RunAssay({"run", Matrix(), "--new"}, options).out, HasSubstr("\x1B[31m"));
}

TEST_F(CliRun, AReaderThatLeavesIsQuiet) {
  Serve();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  close(ends[0]);
  ProcessOptions options = Options();
  options.out_fd = ends[1];
  const Finished done = RunAssay({"run", Matrix(), "--quiet"}, options);
  close(ends[1]);
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.err, "");
}

TEST_F(CliRun, AFullDiskIsAnError) {
  FakeControl& control = Serve();
  control.AddRun(kRunId, "done");
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "no /dev/full here";
  ProcessOptions options = Options();
  options.out_fd = full;
  const Finished done = RunAssay({"results", "last", "--format", "csv"}, options);
  close(full);
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("standard output"));
}

}  // namespace
}  // namespace assay::cli
