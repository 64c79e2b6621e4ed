#include "agent/cell/rank_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/cell/record_lines.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Case 7: the runner's own word for its device must be the one it was given.
TEST(SameDevice, Case7ComparesUuidsInEitherSpelling) {
  EXPECT_TRUE(SameDevice("GPU-8A1f", "GPU-8a1F"));
  EXPECT_TRUE(SameDevice("8a1f", "GPU-8a1f"));
  EXPECT_TRUE(SameDevice("", "CPU-00"));
  EXPECT_TRUE(SameDevice("GPU-parent", "MIG-slice"));
  EXPECT_TRUE(SameDevice("", "MIG-slice"));
  EXPECT_FALSE(SameDevice("", "GPU-8a1f"));
  EXPECT_FALSE(SameDevice("GPU-8a1f", "GPU-8a1e"));
  EXPECT_FALSE(SameDevice("GPU-8a1", "GPU-8a1f"));
}

TEST(BlameDevice, AFaultOfAGpuStandsOverWhatItsRankSaid) {
  const DeviceFault fault{"GPU-a", reason::kEccError, "1 uncorrected ECC errors on GPU-a"};
  std::vector<RankReport> ranks(2);
  ranks[0].gpu_uuid = "GPU-a";
  ranks[0].outcome = Outcome::kOk;
  ranks[1].gpu_uuid = "GPU-b";
  ranks[1].outcome = Outcome::kOk;
  BlameDevice(fault, &ranks);
  EXPECT_EQ(ranks[0].outcome, Outcome::kFail);
  EXPECT_EQ(ranks[0].reason, "ecc_error");
  EXPECT_THAT(ranks[0].message, HasSubstr("GPU-a"));
  EXPECT_EQ(ranks[1].outcome, Outcome::kOk);
  for (const Outcome kept : {Outcome::kCancelled, Outcome::kLost, Outcome::kUnsupported}) {
    ranks[0].outcome = kept;
    BlameDevice(fault, &ranks);
    EXPECT_EQ(ranks[0].outcome, kept);
  }
}

TEST(ResultReport, TakesRunnerFieldsAndNamesTheRest) {
  record::Result result;
  result.outcome = "ok";
  result.fields = {
      {"throughput", 812.5},          {"steps", int64_t{40}},
      {"unit", std::string("img/s")}, {"power_mean_watts", 300.0},     // the agent's to say
      {"no_such_field", 1.0},         {"samples", std::string("x")}};  // wrong type
  std::vector<std::string> dropped;
  const RankReport report = ResultReport(result, &dropped);
  EXPECT_EQ(report.outcome, Outcome::kOk);
  EXPECT_EQ(report.fields.Number(Field::kThroughput), 812.5);
  EXPECT_EQ(report.fields.Integer(Field::kSteps), 40);
  EXPECT_FALSE(report.fields.Has(Field::kPowerMeanWatts));
  EXPECT_THAT(dropped, ElementsAre("power_mean_watts", "no_such_field", "samples"));
}

TEST(ResultReport, DropsFiguresAndTextsThatCannotBe) {
  record::Result result;
  result.outcome = "ok";
  result.fields = {{"throughput", 0.0},
                   {"allocated_peak_bytes", int64_t{-1}},
                   {"ci95_ratio", -0.5},
                   {"unit", std::string(201, 'u')},
                   {"libtorch_version", std::string("2.11\n")},
                   {"cuda_version", std::string("\x1b[2J")},
                   {"loss_last", -0.5},
                   {"skipped_steps", int64_t{0}},
                   {"cudnn_version", std::string(200, 'u')}};
  std::vector<std::string> dropped;
  const RankReport report = ResultReport(result, &dropped);
  EXPECT_THAT(dropped, ElementsAre("throughput", "allocated_peak_bytes", "ci95_ratio", "unit",
                                   "libtorch_version", "cuda_version"));
  EXPECT_FALSE(report.fields.Has(Field::kThroughput));
  EXPECT_EQ(report.fields.Number(Field::kLossLast), -0.5);
  EXPECT_EQ(report.fields.Integer(Field::kSkippedSteps), 0);
  EXPECT_TRUE(report.fields.Has(Field::kCudnnVersion));
}

TEST(OtherDeviceMessage, IsShortAndPrintable) {
  EXPECT_LT(OtherDeviceMessage(std::string(900'000, 'x'), "GPU-1").size(), 200u);
  EXPECT_THAT(OtherDeviceMessage("\x1b[2J", "GPU-1"), testing::Not(HasSubstr("\x1b")));
}

TEST(ResultReport, AReasonThatIsNoCodeBecomesRunnerError) {
  record::Result result;
  result.outcome = "fail";
  result.reason = "because";
  std::vector<std::string> dropped;
  const RankReport report = ResultReport(result, &dropped);
  EXPECT_EQ(report.reason, reason::kRunnerError);
  EXPECT_FALSE(report.message.empty());
}

TEST(ResultReport, FindsTheCauseInWhatAFrameworkThrew) {
  record::Result result;
  result.outcome = "fail";
  result.reason = "runner_error";
  result.message = "CUDA error: uncorrectable ECC error encountered";
  std::vector<std::string> dropped;
  EXPECT_EQ(ResultReport(result, &dropped).reason, reason::kEccError);
}

TEST(Contradiction, OkAndThenACrashIsNoResult) {
  RankReport report;
  report.outcome = Outcome::kOk;
  report.exit_code = 0;
  EXPECT_FALSE(Contradiction(report).has_value());
  report.exit_code = 1;
  EXPECT_EQ(Contradiction(report)->reason, reason::kBadOutput);
  report.exit_code = -1;
  report.signal = 11;
  EXPECT_EQ(Contradiction(report)->reason, reason::kCrash);
}

// Case 16.
TEST(SilenceMessage, Case16HintsAtPeerToPeerOnlyWithSeveralRanks) {
  EXPECT_THAT(SilenceMessage(60, "warmup", 2), HasSubstr("NCCL_P2P_DISABLE"));
  EXPECT_THAT(SilenceMessage(60, "warmup", 2), HasSubstr("IOMMU"));
  EXPECT_THAT(SilenceMessage(60, "warmup", 1), testing::Not(HasSubstr("P2P")));
}

TEST(RecordLines, JoinsPartsAndKeepsTheRest) {
  RecordLines lines;
  std::vector<std::string> seen;
  const auto keep = [&](std::string_view line) { seen.emplace_back(line); };
  lines.Append("ab", keep);
  lines.Append("c\n\nd\ne", keep);
  EXPECT_THAT(seen, ElementsAre("abc", "d"));
  EXPECT_EQ(lines.TakeRest(), "e");
  EXPECT_EQ(lines.TakeRest(), "");
}

TEST(RecordLines, HandsAnEndlessLineOnOnceAndDropsItsRest) {
  RecordLines lines;
  std::vector<size_t> sizes;
  const auto keep = [&](std::string_view line) { sizes.push_back(line.size()); };
  for (int i = 0; i < 40; ++i) lines.Append(std::string(100'000, 'x'), keep);
  lines.Append("\nnext\n", keep);
  EXPECT_THAT(sizes, ElementsAre(size_t{record::kMaxLineBytes} + 1, 4u));
}

}  // namespace
}  // namespace assay
