#include "runners/common/largest_batch_cell.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

namespace assay {
namespace {

// Processes that have room for `room` samples of one byte.
class Children {
 public:
  explicit Children(int64_t room) : room_(room) {}

  RunnerResult Run(int64_t accumulate = 1) {
    char path[] = "/tmp/largest_batch_XXXXXX";
    const int fd = mkstemp(path);
    CellFile cell;
    cell.spec.model = "resnet50";
    cell.spec.batch = kBatchMax;
    cell.spec.accumulate = accumulate;
    RecordWriter records(fd, true);
    const RunnerResult result = RunLargestBatch(
        cell, records,
        [this](const CellFile& child, const OnChildRecord& say) { return RunOne(child, say); });
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) written.push_back(line);
    unlink(path);
    return result;
  }

  std::vector<CellFile> cells;
  std::vector<std::string> written;
  int64_t measurement_fails_from = int64_t{1} << 40;
  std::string trial_outcome;  // of every trial, where not empty
  bool dies = false;

 private:
  ChildEnd RunOne(const CellFile& child, const OnChildRecord& say) {
    cells.push_back(child);
    const bool trial = child.trial_steps > 0;
    say(record::Phase{"setup"});
    if (dies) return {std::nullopt, "its process was ended by signal 9 (Killed)"};
    record::Result result;
    result.outcome = "ok";
    if (child.spec.batch > room_ || (!trial && child.spec.batch >= measurement_fails_from)) {
      result.outcome = "mem_limit";
      result.reason = "out_of_memory";
      result.message = "no room for " + std::to_string(child.spec.batch);
      return {result, ""};
    }
    if (trial && !trial_outcome.empty()) {
      result.outcome = trial_outcome;
      result.reason = "unsupported_precision";
      return {result, ""};
    }
    say(record::Phase{trial ? "warmup" : "measure"});
    say(record::Progress{1, 5.0, 1.0});
    if (trial) {
      result.fields.emplace_back(kTrialUsedBytes, static_cast<double>(child.spec.batch));
      result.fields.emplace_back(kTrialCapacityBytes, static_cast<double>(room_));
    } else {
      result.fields.emplace_back("throughput", 812.5);
      result.fields.emplace_back("steps", int64_t{100});
    }
    return {result, ""};
  }

  const int64_t room_;
};

int Count(const std::vector<std::string>& lines, const std::string& part) {
  int count = 0;
  for (const std::string& line : lines) count += line.find(part) != std::string::npos;
  return count;
}

TEST(LargestBatchCell, MeasuresAtTheLargestThatTrainedAndSaysSo) {
  Children children(41);
  const RunnerResult result = children.Run();
  EXPECT_EQ(result.outcome, "ok") << result.message;
  EXPECT_EQ(result.fields["largest_batch"], 41);
  EXPECT_EQ(result.fields["largest_batch_limit"], 42);
  EXPECT_EQ(result.fields["largest_batch_proven"], true);
  EXPECT_EQ(result.fields["throughput"], 812.5);
  EXPECT_EQ(result.fields["steps"], 100);
  EXPECT_FALSE(result.fields.contains(kTrialUsedBytes));
  EXPECT_EQ(children.cells.back().spec.batch, 41);
  EXPECT_EQ(children.cells.back().trial_steps, 0);
  EXPECT_EQ(result.fields["largest_batch_trials"], children.cells.size() - 1);
}

TEST(LargestBatchCell, EveryTrialTakesTwentySteps) {
  Children children(41);
  children.Run();
  for (size_t i = 0; i + 1 < children.cells.size(); ++i) {
    EXPECT_EQ(children.cells[i].trial_steps, 20);
  }
}

TEST(LargestBatchCell, JoinsOnceAndPassesOnPhasesOfTheMeasurementAlone) {
  Children children(41);
  children.Run();
  EXPECT_EQ(Count(children.written, "\"joined\""), 1);
  EXPECT_EQ(Count(children.written, "\"measure\""), 1);
  EXPECT_EQ(Count(children.written, "\"warmup\""), 0);  // of a trial
  EXPECT_GE(Count(children.written, "\"progress\""), 1);
}

TEST(LargestBatchCell, MicroBatchesDivideWhatIsTried) {
  Children children(1000);
  const RunnerResult result = children.Run(/*accumulate=*/5);
  for (const CellFile& cell : children.cells) EXPECT_EQ(cell.spec.batch % 5, 0);
  EXPECT_EQ(result.fields["largest_batch"], 1000);
  EXPECT_EQ(result.fields["largest_batch_limit"], 1040);
}

TEST(LargestBatchCell, NotEvenOneFitsIsMemLimit) {
  Children children(0);
  const RunnerResult result = children.Run();
  EXPECT_EQ(result.outcome, "mem_limit");
  EXPECT_EQ(result.message, "no room for 1");
  EXPECT_TRUE(result.fields["largest_batch"].is_null());
  EXPECT_EQ(result.fields["largest_batch_limit"], 1);
}

TEST(LargestBatchCell, WhatATrialComesToElseIsWhatTheCellComesTo) {
  Children children(41);
  children.trial_outcome = "unsupported";
  const RunnerResult result = children.Run();
  EXPECT_EQ(result.outcome, "unsupported");
  EXPECT_EQ(result.reason, "unsupported_precision");
  EXPECT_EQ(children.cells.size(), 1u);
}

TEST(LargestBatchCell, AProcessThatDiesIsACrashAndNamesItsBatch) {
  Children children(41);
  children.dies = true;
  const RunnerResult result = children.Run();
  EXPECT_EQ(result.outcome, "fail");
  EXPECT_EQ(result.reason, "crash");
  EXPECT_EQ(result.message, "batch 8: its process was ended by signal 9 (Killed)");
}

TEST(LargestBatchCell, AMeasurementThatRunsOutOfMemoryLeavesAnIntervalAndMeasuresBelow) {
  Children children(41);
  children.measurement_fails_from = 40;
  const RunnerResult result = children.Run();
  EXPECT_EQ(result.outcome, "ok") << result.message;
  EXPECT_EQ(result.fields["largest_batch"], 39);
  EXPECT_EQ(result.fields["largest_batch_limit"], 42);
  EXPECT_EQ(result.fields["largest_batch_proven"], false);
}

TEST(LargestBatchCell, AMeasurementThatNeverFitsIsMemLimitWithItsInterval) {
  Children children(41);
  children.measurement_fails_from = 0;
  const RunnerResult result = children.Run();
  EXPECT_EQ(result.outcome, "mem_limit");
  EXPECT_EQ(result.fields["largest_batch_proven"], false);
  int measurements = 0;
  for (const CellFile& cell : children.cells) measurements += cell.trial_steps == 0;
  EXPECT_EQ(measurements, kMostMeasurements);
}

}  // namespace
}  // namespace assay
