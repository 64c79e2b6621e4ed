// The agent's questions to its own program, played by shell scripts.
#include "agent/session/doctor_child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

namespace assay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr char kReport[] =
    "printf '{\\n\"node\":\"n1\",\"checks\":[{\"name\":\"disk\",\"state\":\"bad\"}]\\n}\\n' >&3; ";

class DoctorChildTest : public testing::Test {
 protected:
  void SetUp() override { ::signal(SIGPIPE, SIG_IGN); }
  void Make(const std::string& script, std::chrono::nanoseconds limit = seconds(60)) {
    DoctorChildOptions options;
    options.program = "/bin/sh";
    options.arguments = {"-c", script, "doctor"};
    options.environment = {{"PATH", "/usr/bin:/bin"}};
    options.limit = limit;
    child_ = std::make_unique<DoctorChild>(
        *loop_, *reaper_, options,
        [this](absl::StatusOr<DoctorReport> result) { told_.push_back(std::move(result)); });
  }
  bool WaitFor(size_t count) {
    return loop_->RunUntil([&] { return told_.size() >= count; }, BootClock::now() + seconds(30));
  }

  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  std::unique_ptr<OrphanReaper> reaper_ = OrphanReaper::Create(*loop_).value();
  std::vector<absl::StatusOr<DoctorReport>> told_;
  std::unique_ptr<DoctorChild> child_;
};

TEST_F(DoctorChildTest, TellsTheReportAndCanBeAskedAgain) {
  Make(kReport);
  for (const size_t count : {1u, 2u}) {
    child_->Ask(false);
    EXPECT_EQ(told_.size(), count - 1);
    ASSERT_TRUE(WaitFor(count));
    ASSERT_TRUE(told_.back().ok()) << told_.back().status();
    EXPECT_EQ(told_.back()->checks.at(0).name, "disk");
  }
}

TEST_F(DoctorChildTest, QuestionsWhileOneRunsShareItsReport) {
  Make(kReport);
  child_->Ask(false);
  child_->Ask(false);
  ASSERT_TRUE(WaitFor(1));
  EXPECT_FALSE(
      loop_->RunUntil([&] { return told_.size() > 1; }, BootClock::now() + milliseconds(300)));
}

TEST_F(DoctorChildTest, BesideACellItIsToldSo) {
  Make(std::string("[ \"$1\" = --measuring ] && { ") + kReport + " }");
  child_->Ask(true);
  ASSERT_TRUE(WaitFor(1));
  EXPECT_TRUE(told_[0].ok());
  child_->Ask(false);
  ASSERT_TRUE(WaitFor(2));
  EXPECT_FALSE(told_[1].ok());
}

TEST_F(DoctorChildTest, ATreeThatHangsIsEndedAtTheLimit) {
  Make("echo asking the driver; sleep 600", milliseconds(300));
  child_->Ask(false);
  ASSERT_TRUE(WaitFor(1));
  EXPECT_EQ(told_[0].status().code(), absl::StatusCode::kDeadlineExceeded);
}

// Its report came; what keeps it from ending is a thread in the driver.
TEST_F(DoctorChildTest, AReportIsTakenBeforeItsProgramEnds) {
  Make(std::string(kReport) + "trap '' TERM; sleep 600");
  child_->Ask(false);
  ASSERT_TRUE(WaitFor(1));
  EXPECT_TRUE(told_[0].ok());
  // A question in the meantime waits until the one before was ended.
  child_->Ask(false);
  ASSERT_TRUE(WaitFor(2));
  EXPECT_TRUE(told_[1].ok());
}

TEST_F(DoctorChildTest, AProgramThatFailsIsQuoted) {
  Make("echo 'assay-agent: config.yaml:3: no such key' >&2; exit 2");
  child_->Ask(false);
  ASSERT_TRUE(WaitFor(1));
  EXPECT_THAT(std::string(told_[0].status().message()), HasSubstr("config.yaml:3"));
}

TEST_F(DoctorChildTest, AProgramThatIsMissingIsOneSentence) {
  DoctorChildOptions options;
  options.program = "/no/such/agent";
  DoctorChild child(*loop_, *reaper_, options, [this](absl::StatusOr<DoctorReport> result) {
    told_.push_back(std::move(result));
  });
  child.Ask(false);
  EXPECT_TRUE(told_.empty());
  ASSERT_TRUE(WaitFor(1));
  EXPECT_EQ(told_[0].status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DoctorChildTest, OutputWithoutEndHoldsUpNothing) {
  Make("exec cat /dev/zero >&3", seconds(1));
  child_->Ask(false);
  ASSERT_TRUE(WaitFor(1));
  EXPECT_FALSE(told_[0].ok());
}

}  // namespace
}  // namespace assay
