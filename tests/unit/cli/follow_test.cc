#include "cli/follow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "scripted_control.h"

namespace assay::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunUpdate Update(const std::string& state, bool final) {
  RunUpdate update;
  update.run = "01JRUN";
  update.state = state;
  update.final = final;
  return update;
}

class NotesView final : public ProgressView {
 public:
  void Update(const RunUpdate&) override { ++updates; }
  void Tick() override {}
  void Note(const std::string& sentence) override { notes.push_back(sentence); }
  void Finish() override {}
  int updates = 0;
  std::vector<std::string> notes;
};

class FollowTest : public ::testing::Test {
 protected:
  FollowTest() { EXPECT_EQ(pipe(interrupt_), 0); }
  ~FollowTest() override {
    close(interrupt_[0]);
    close(interrupt_[1]);
  }

  FollowResult Run(OnInterrupt on_interrupt) {
    ConnectionOptions connection;
    connection.coordinator = "unix:/scripted";
    ConnectionPorts ports;
    ports.open = [this](const std::string&) -> absl::StatusOr<std::unique_ptr<Control>> {
      ++script_.opened;
      return std::unique_ptr<Control>(new ScriptedControl(script_));
    };
    Session session(Connection(connection, ports));
    EXPECT_TRUE(session.Open().ok());
    FollowOptions options;
    options.on_interrupt = on_interrupt;
    options.interrupt_fd = interrupt_[0];
    options.first_pause = std::chrono::milliseconds(0);
    if (break_after_open_) script_.info = absl::UnavailableError("refused");
    return Follow(session, "last", options, view_, clock_);
  }
  void PressCtrlC() { EXPECT_EQ(write(interrupt_[1], "x", 1), 1); }

  Script script_;
  FakeClock clock_;
  NotesView view_;
  bool break_after_open_ = false;
  int interrupt_[2] = {-1, -1};
};

TEST_F(FollowTest, EndsWithTheFinalUpdate) {
  script_.watches = {{{Update("running", false), Update("done", true)}, std::nullopt}};
  const FollowResult result = Run(OnInterrupt::kCancelRun);
  EXPECT_TRUE(result.status.ok());
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.last->state, "done");
  EXPECT_EQ(view_.updates, 2);
}

TEST_F(FollowTest, UnknownRunIsNotTriedAgain) {
  script_.watches = {{{}, absl::NotFoundError("there is no run x")}};
  const FollowResult result = Run(OnInterrupt::kLeave);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(script_.watched.size(), 1u);
}

TEST_F(FollowTest, ALostCoordinatorIsConnectedAgainByTheIdOfTheRun) {
  script_.watches = {{{Update("running", false)}, absl::UnavailableError("gone")},
                     {{Update("done", true)}, std::nullopt}};
  const FollowResult result = Run(OnInterrupt::kLeave);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(script_.opened, 2);
  EXPECT_THAT(script_.watched, ElementsAre("last", "01JRUN"));
}

TEST_F(FollowTest, AnEndBeforeTheFinalUpdateIsALoss) {
  script_.watches = {{{Update("running", false)}, absl::OkStatus()},
                     {{Update("done", true)}, std::nullopt}};
  EXPECT_TRUE(Run(OnInterrupt::kLeave).status.ok());
  EXPECT_EQ(script_.opened, 2);
}

TEST_F(FollowTest, GivesUpAfterAFewTries) {
  script_.watches = {{{Update("running", false)}, absl::UnavailableError("gone")}};
  break_after_open_ = true;
  const FollowResult result = Run(OnInterrupt::kLeave);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(result.status.ToString(), HasSubstr("01JRUN"));
  EXPECT_EQ(script_.opened, 1 + FollowOptions().most_tries);
}

TEST_F(FollowTest, ACoordinatorThatAlwaysBreaksIsGivenUpToo) {
  script_.watches = {{{Update("running", false)}, absl::UnavailableError("gone")}};
  EXPECT_EQ(Run(OnInterrupt::kLeave).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(script_.opened, 1 + FollowOptions().most_tries);
}

TEST_F(FollowTest, CtrlCCancelsOnceSaysSoAndWaitsForTheEnd) {
  PressCtrlC();
  script_.watches = {{{Update("running", false)}, std::nullopt}};
  script_.final_after_cancel = Update("cancelled", true);
  const FollowResult result = Run(OnInterrupt::kCancelRun);
  EXPECT_TRUE(result.status.ok());
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.last->state, "cancelled");
  EXPECT_THAT(script_.cancelled, ElementsAre("01JRUN"));
  ASSERT_EQ(view_.notes.size(), 1u);
  EXPECT_THAT(view_.notes[0], HasSubstr("Ctrl-C again"));
}

TEST_F(FollowTest, ACancelIsAskedForAgainAfterALoss) {
  PressCtrlC();
  script_.watches = {{{Update("running", false)}, std::nullopt},
                     {{Update("cancelled", true)}, std::nullopt}};
  script_.lost_after_cancel = true;
  const FollowResult result = Run(OnInterrupt::kCancelRun);
  EXPECT_TRUE(result.status.ok());
  EXPECT_THAT(script_.cancelled, ElementsAre("01JRUN", "01JRUN"));
}

// The first watch is lost before anybody looks at the descriptor.
TEST_F(FollowTest, CtrlCWhileTheCoordinatorIsAwayIsAskedForWhenOneAnswers) {
  PressCtrlC();
  script_.watches = {{{Update("running", false)}, absl::UnavailableError("gone")},
                     {{}, std::nullopt}};
  script_.final_after_cancel = Update("cancelled", true);
  const FollowResult result = Run(OnInterrupt::kCancelRun);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.last->state, "cancelled");
  EXPECT_THAT(script_.cancelled, ElementsAre("01JRUN"));
}

TEST_F(FollowTest, CtrlCWhileTheCoordinatorStaysAwayIsGivenUp) {
  PressCtrlC();
  script_.watches = {{{Update("running", false)}, absl::UnavailableError("gone")}};
  break_after_open_ = true;
  const FollowResult result = Run(OnInterrupt::kCancelRun);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(result.status.ToString(), HasSubstr("perhaps not cancelled"));
  EXPECT_TRUE(result.interrupted);
  // The try that the Ctrl-C came upon does not count.
  EXPECT_EQ(script_.opened, 2 + FollowOptions().most_tries);
}

TEST_F(FollowTest, CtrlCOfAWatcherWhoseCoordinatorIsAwayStopsTheSearch) {
  PressCtrlC();
  script_.watches = {{{Update("running", false)}, absl::UnavailableError("gone")}};
  const FollowResult result = Run(OnInterrupt::kLeave);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(script_.opened, 1);
}

TEST_F(FollowTest, CtrlCOfAWatcherLeavesTheRunAlone) {
  PressCtrlC();
  script_.watches = {{{Update("running", false)}, std::nullopt}};
  const FollowResult result = Run(OnInterrupt::kLeave);
  EXPECT_TRUE(result.status.ok());
  EXPECT_TRUE(result.interrupted);
  EXPECT_THAT(script_.cancelled, IsEmpty());
}

}  // namespace
}  // namespace assay::cli
