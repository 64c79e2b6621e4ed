#include "cli/progress.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/text/utf8.h"
#include "fake_terminal.h"

namespace assay::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

RunUpdate Running() {
  RunUpdate update;
  update.run = "01J";
  update.name = "cards-cnn";
  update.state = "running";
  update.cells = 48;
  update.done = 12;
  update.outcomes = {{Outcome::kOk, 11}, {Outcome::kFail, 1}};
  update.seconds_left = 800;
  CellProgress cell;
  cell.cell = 13;
  cell.label = "resnet50 train amp-fp16 b64 eager RTX 3090";
  cell.phase = "measure";
  cell.step = 120;
  cell.throughput = 812.5;
  cell.unit = "img/s";
  cell.seconds_left = 20;
  update.active = {cell};
  return update;
}

CellEnd Failed() {
  CellEnd end;
  end.cell = 12;
  end.label = "resnet50 train fp32 b64 eager RTX 3090";
  end.outcome = Outcome::kFail;
  end.reason = "crash";
  end.message = "SIGSEGV";
  return end;
}

TEST(ProgressBlock, SaysCellsStepThroughputAndTimeLeft) {
  const auto lines = ProgressBlock(Running(), std::nullopt, 0, {80, 24}, false);
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  for (const char* part : {"cards-cnn", "12/48 cells", "11 ok, 1 fail", "resnet50 train amp-fp16",
                           "measure", "step 120", "812.5 img/s", "20 s left", " 25 %"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
}

TEST(ProgressBlock, TimeLeftShrinksBetweenUpdates) {
  const auto lines = ProgressBlock(Running(), std::nullopt, 10, {80, 24}, false);
  EXPECT_THAT(lines[3], HasSubstr("10 s left"));
}

TEST(ProgressBlock, UnknownFiguresAreLeftOut) {
  RunUpdate update = Running();
  update.seconds_left = std::numeric_limits<double>::quiet_NaN();
  update.active[0].throughput = std::numeric_limits<double>::infinity();
  update.active[0].seconds_left = 0;
  update.active[0].step = 0;
  for (const std::string& line : ProgressBlock(update, std::nullopt, 0, {80, 24}, false)) {
    EXPECT_THAT(line, Not(HasSubstr("nan")));
    EXPECT_THAT(line, Not(HasSubstr("inf")));
    EXPECT_THAT(line, Not(HasSubstr("left")));
    EXPECT_THAT(line, Not(HasSubstr("img/s")));
  }
}

TEST(ProgressBlock, NeverWiderOrTallerThanTheTerminal) {
  RunUpdate update = Running();
  for (int i = 0; i < 40; ++i) update.active.push_back(update.active[0]);
  update.name = std::string(300, 'n');
  for (const int columns : {12, 20, 40, 80, 200}) {
    for (const int rows : {2, 4, 24}) {
      const auto lines = ProgressBlock(update, Failed(), 0, {columns, rows}, false);
      EXPECT_LT(lines.size(), static_cast<size_t>(rows));
      for (const std::string& line : lines) {
        EXPECT_LT(DisplayWidth(line), static_cast<size_t>(columns)) << line;
      }
    }
  }
}

TEST(ProgressBlock, SaysWhatItWaitsFor) {
  RunUpdate update = Running();
  update.active.clear();
  update.waiting_for = "GPU 0 is busy";
  const auto lines = ProgressBlock(update, std::nullopt, 0, {80, 24}, false);
  EXPECT_THAT(lines.back(), HasSubstr("GPU 0 is busy"));
}

// Case 12: what a driver calls a card.
TEST(ProgressBlock, EscapeSequencesOfALabelAreTakenAway) {
  RunUpdate update = Running();
  update.active[0].label = "card \x1B[2J\xFF name\n";
  for (const std::string& line : ProgressBlock(update, std::nullopt, 0, {80, 24}, false)) {
    EXPECT_EQ(line.find('\x1B'), std::string::npos);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_TRUE(IsUtf8(line));
  }
}

class BlockViewTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  FakeTerminal terminal_{80};
  BlockView view_{[this](std::string_view text) { terminal_.Write(text); },
                  [] { return TerminalSize{80, 24}; }, false, clock_};
};

TEST_F(BlockViewTest, RedrawsInPlace) {
  view_.Update(Running());
  RunUpdate update = Running();
  update.done = 13;
  view_.Update(update);
  EXPECT_TRUE(terminal_.Shows("13/48"));
  EXPECT_FALSE(terminal_.Shows("12/48"));
  EXPECT_THAT(terminal_.Screen()[0], StartsWith("cards-cnn"));
}

TEST_F(BlockViewTest, AShorterBlockLeavesNothingOfTheLonger) {
  view_.Update(Running());
  RunUpdate update = Running();
  update.active.clear();
  view_.Update(update);
  EXPECT_FALSE(terminal_.Shows("resnet50"));
}

TEST_F(BlockViewTest, FailuresStayAboveTheBlock) {
  RunUpdate update = Running();
  update.ended = {Failed()};
  view_.Update(update);
  view_.Update(Running());
  EXPECT_THAT(terminal_.Screen()[0], StartsWith("[12/48] fail"));
  EXPECT_TRUE(terminal_.Shows("SIGSEGV"));
}

TEST_F(BlockViewTest, FinishTakesTheBlockAwayAndKeepsWhatStays) {
  view_.Update(Running());
  view_.Note("a note");
  view_.Finish();
  EXPECT_THAT(terminal_.Screen(), ElementsAre("a note"));
}

TEST_F(BlockViewTest, TicksRedrawAtMostOnceASecond) {
  int writes = 0;
  BlockView view([&](std::string_view) { ++writes; }, [] { return TerminalSize{80, 24}; }, false,
                 clock_);
  RunUpdate update = Running();
  update.seconds_left = 40;
  view.Update(update);
  view.Tick();
  EXPECT_EQ(writes, 1);
  clock_.Advance(std::chrono::seconds(8));
  view.Tick();
  view.Tick();
  EXPECT_EQ(writes, 2);
}

TEST_F(BlockViewTest, WhatStandsThereIsNotWrittenAgain) {
  int writes = 0;
  BlockView view([&](std::string_view) { ++writes; }, [] { return TerminalSize{80, 24}; }, false,
                 clock_);
  view.Update(Running());
  view.Update(Running());
  EXPECT_EQ(writes, 1);
}

TEST(ProgressBlock, SaysNoCountBeforeThereAreCells) {
  RunUpdate update;
  update.name = "cards-cnn";
  update.waiting_for = "an agent to connect";
  const auto lines = ProgressBlock(update, std::nullopt, 0, {80, 24}, false);
  EXPECT_THAT(lines, ElementsAre("cards-cnn", "waiting: an agent to connect"));
  EXPECT_EQ(HeartbeatLine(update), "waiting: an agent to connect");
}

class LineViewTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  std::vector<std::string> lines_;
  LineView view_{[this](std::string_view text) { lines_.emplace_back(text); }, clock_};
};

TEST_F(LineViewTest, OneLineForEachEndedCell) {
  RunUpdate update = Running();
  CellEnd ok = Failed();
  ok.outcome = Outcome::kOk;
  ok.throughput = 812.5;
  ok.unit = "img/s";
  update.ended = {ok, Failed()};
  view_.Update(update);
  EXPECT_THAT(
      lines_,
      ElementsAre("[11/48] ok  resnet50 train fp32 b64 eager RTX 3090  812.5 img/s\n",
                  "[12/48] fail  resnet50 train fp32 b64 eager RTX 3090  crash: SIGSEGV\n"));
}

TEST_F(LineViewTest, AHeartbeatComesAfterTenSecondsOfSilenceAndNotBefore) {
  view_.Update(Running());
  clock_.Advance(std::chrono::milliseconds(9900));
  view_.Tick();
  EXPECT_THAT(lines_, IsEmpty());
  clock_.Advance(std::chrono::milliseconds(200));
  view_.Tick();
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0], HasSubstr("step 120"));
  view_.Tick();
  EXPECT_EQ(lines_.size(), 1u);
}

TEST_F(LineViewTest, WaitingIsSaidOnceWhenItChanges) {
  RunUpdate update = Running();
  update.active.clear();
  update.waiting_for = "no agent";
  view_.Update(update);
  view_.Update(update);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0], HasSubstr("no agent"));
}

TEST_F(LineViewTest, NoEscapeSequences) {
  RunUpdate update = Running();
  update.ended = {Failed()};
  update.ended[0].message = "\x1B[31mred";
  view_.Update(update);
  view_.Note("\x1B[2Jnote");
  for (const std::string& line : lines_) EXPECT_EQ(line.find('\x1B'), std::string::npos);
}

TEST_F(BlockViewTest, ABlockThatAStopTookAwayIsDrawnAnewAndNothingElseErased) {
  size_t standing = 0;
  bool gone = false;
  BlockView view(
      [this](std::string_view text) { terminal_.Write(text); }, [] { return TerminalSize{80, 24}; },
      false, clock_,
      {[&](size_t lines) { standing = lines; }, [&] { return std::exchange(gone, false); }});
  view.Update(Running());
  EXPECT_GT(standing, 2u);
  // As the handler of SIGTSTP and a shell do.
  terminal_.Write(fmt::format("\r\x1B[{}A\x1B[J", standing));
  terminal_.Write("[1]+  Stopped\n$ fg\n");
  gone = true;
  clock_.Advance(std::chrono::seconds(1));
  view.Tick();
  EXPECT_TRUE(terminal_.Shows("[1]+  Stopped"));
  EXPECT_TRUE(terminal_.Shows("$ fg"));
  EXPECT_TRUE(terminal_.Shows("12/48 cells"));
  view.Finish();
  EXPECT_THAT(terminal_.Screen(), ElementsAre("[1]+  Stopped", "$ fg"));
  EXPECT_EQ(standing, 0u);
}

// A disk that was nearly full let a quiet run wait for ever without a word.
TEST(QuietView, TellsOnceForWhatARunHasWaitedLong) {
  FakeClock clock;
  std::string said;
  QuietView view([&](std::string_view text) { said += text; }, clock);
  RunUpdate waiting = Running();
  waiting.active.clear();
  waiting.waiting_for = "n1 refused: disk_full: 9 MiB free";
  view.Update(waiting);
  clock.Advance(QuietView::kPatience - std::chrono::seconds(1));
  waiting.waiting_for = "n1 refused: disk_full: 8 MiB free";
  view.Update(waiting);
  EXPECT_EQ(said, "");
  clock.Advance(std::chrono::seconds(1));
  view.Tick();
  EXPECT_EQ(said, "warning: the run has waited for 45 s for n1 refused: disk_full: 8 MiB free\n");
  clock.Advance(QuietView::kPatience * 3);
  view.Update(waiting);
  view.Tick();
  EXPECT_THAT(said, Not(HasSubstr("\nwarning")));
  view.Update(Running());
  view.Update(waiting);
  clock.Advance(QuietView::kPatience);
  view.Tick();
  EXPECT_THAT(said, HasSubstr("\nwarning"));
}

TEST(ThroughputText, IsEmptyForWhatIsNoFigure) {
  EXPECT_EQ(ThroughputText(0, "img/s"), "");
  EXPECT_EQ(ThroughputText(-1, "img/s"), "");
  EXPECT_EQ(ThroughputText(std::numeric_limits<double>::quiet_NaN(), "img/s"), "");
  EXPECT_EQ(ThroughputText(14710, "img/s"), "14,710 img/s");
}

}  // namespace
}  // namespace assay::cli
