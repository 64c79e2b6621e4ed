// Where ranks run, what runs beside their cell, and what spoils it: with real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/integration/agent/node_agent_bench.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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

// Writes what it is run for, and its load never ends by itself.
constexpr char kLoadOrCell[] =
    "grep -o '\"purpose\": *\"[^\"]*\"' $cell >> $purposes; hello; say '{\"record\":\"joined\"}'; "
    "say '{\"record\":\"phase\",\"phase\":\"measure\"}'; "
    "if grep -q '\"purpose\": *\"settle\"' $cell; then sleep 100; fi; ok";

TEST_F(NodeAgentTest, AColdGpuIsLoadedWithTheCellItselfUntilItIsFlat) {
  telemetry_.has_heat = true;
  Runner("purposes=" + dir_ + "/purposes; " + kLoadOrCell);
  StartAgent();
  Welcomed();
  const AttemptReport first = RunGang(Order(1, "01A"));
  EXPECT_EQ(first.ranks.at(0).outcome, Outcome::kOk) << first.ranks[0].message;
  EXPECT_EQ(first.telemetry.Flag(Field::kSettled), true);
  EXPECT_GT(first.telemetry.Number(Field::kSettleSeconds).value_or(0), 0);
  EXPECT_EQ(first.telemetry.Number(Field::kSettleEndCelsius), 60);
  EXPECT_EQ(first.telemetry.Text(Field::kExclusive), "verified");
  EXPECT_EQ(telemetry_.loads, 1);
  const AttemptReport second = RunGang(Order(1, "01B"));  // still warm
  EXPECT_EQ(second.telemetry.Number(Field::kSettleSeconds), 0);
  EXPECT_EQ(telemetry_.loads, 1);
  std::ifstream in(dir_ + "/purposes");
  const std::string purposes(std::istreambuf_iterator<char>(in), {});
  EXPECT_THAT(purposes, testing::MatchesRegex("\"purpose\": *\"settle\"\n"
                                              "\"purpose\": *\"measure\"\n"
                                              "\"purpose\": *\"measure\"\n"));
  EXPECT_EQ(Alive("01A"), 0u);
}

TEST_F(NodeAgentTest, TheLastCellOfASessionHasASentinelOnBothSides) {
  telemetry_.has_heat = true;
  stacks_.stack.models = {"resnet50"};
  stacks_.stack.modes = {"train"};
  stacks_.stack.precisions = {"fp32"};
  stacks_.stack.lanes = {"eager"};
  // The second sentinel is slower.
  const std::string result =
      "say '{\"record\":\"result\",\"outcome\":\"ok\",\"fields\":{\"throughput\":";
  Runner("purposes=" + dir_ +
         "/purposes; if grep -q '\"purpose\": *\"sentinel\"' $cell; then "
         "echo sentinel >> $purposes; hello; say '{\"record\":\"joined\"}'; "
         "if [ -e " +
         dir_ + "/once ]; then " + result + "97}}'; else touch " + dir_ + "/once; " + result +
         "100}}'; fi; exit 0; fi; " + kLoadOrCell);
  StartAgent();
  Welcomed();
  PrepareOrder order = Order(1);
  order.closing = true;
  const AttemptReport report = RunGang(order);
  EXPECT_EQ(report.ranks.at(0).outcome, Outcome::kOk) << report.ranks[0].message;
  EXPECT_EQ(report.ranks[0].fields.Number(Field::kThroughput), 5.5);
  EXPECT_EQ(report.telemetry.Text(Field::kSentinelSeries), "01A");
  EXPECT_EQ(report.telemetry.Number(Field::kSentinelBefore), 100);
  EXPECT_EQ(report.telemetry.Number(Field::kSentinelAfter), 97);
  EXPECT_EQ(report.telemetry.Text(Field::kExclusive), "verified");
  std::ifstream in(dir_ + "/purposes");
  const std::string purposes(std::istreambuf_iterator<char>(in), {});
  EXPECT_THAT(purposes, testing::MatchesRegex(
                            "[^\n]*settle[^\n]*\nsentinel\n[^\n]*measure[^\n]*\nsentinel\n"));
  EXPECT_EQ(Alive("01A"), 0u);
}

TEST_F(NodeAgentTest, ALoadThatCannotRunLeavesTheCellUnsettledAndRunsIt) {
  telemetry_.has_heat = true;
  Runner("if grep -q '\"purpose\": *\"settle\"' $cell; then exit 1; fi; hello; ok");
  StartAgent();
  Welcomed();
  const AttemptReport report = RunGang(Order(1));
  EXPECT_EQ(report.ranks.at(0).outcome, Outcome::kOk);
  EXPECT_EQ(report.telemetry.Flag(Field::kSettled), false);
}

TEST_F(NodeAgentTest, AnAbortEndsTheLoadAndLeavesNoProcess) {
  telemetry_.has_heat = true;
  telemetry_.becomes_flat = false;
  Runner("purposes=" + dir_ + "/purposes; " + kLoadOrCell);
  StartAgent();
  Welcomed();
  Begin(Order(2));
  ASSERT_TRUE(Wait([&] { return telemetry_.loads == 1 && Alive("01A") >= 2; }));
  dialer_.stream->Deliver(AbortOrder{"01A", Outcome::kCancelled, "user_cancelled"});
  ASSERT_TRUE(Wait([&] { return !reports_.empty(); }));
  EXPECT_EQ(reports_[0].ranks.at(1).outcome, Outcome::kCancelled);
  EXPECT_EQ(Alive("01A"), 0u);
}

// As after SIGSTOP and SIGCONT: the end of the load is seen first, and the lease has long ended.
// The cell may run elsewhere by then.
TEST_F(NodeAgentTest, AStoppedAgentWhoseLeaseEndedMeanwhileStartsNoRanks) {
  telemetry_.has_heat = true;
  telemetry_.becomes_flat = false;
  const std::string ends = dir_ + "/ends";
  Runner("grep -o '\"purpose\": *\"[^\"]*\"' $cell >> " + dir_ +
         "/purposes; hello; say '{\"record\":\"joined\"}'; "
         "if grep -q '\"purpose\": *\"settle\"' $cell; then "
         "while [ ! -e " +
         ends + " ]; do sleep 0.05; done; exit 1; fi; sleep 100");
  StartAgent();
  Welcomed(/*lease=*/4);
  Begin(Order(1));
  ASSERT_TRUE(Wait([&] { return fs::exists(dir_ + "/purposes"); }));
  std::ofstream(ends).put('x');
  std::this_thread::sleep_for(std::chrono::seconds(5));  // nobody runs the loop
  ASSERT_TRUE(Wait([&] { return !reports_.empty(); }));
  EXPECT_EQ(reports_[0].ranks.at(0).outcome, Outcome::kLost);
  EXPECT_FALSE(fs::exists(dir_ + "/state/cells/01A.rank0.json")) << "its rank was started";
  EXPECT_TRUE(fs::exists(dir_ + "/state/cells/01A.settle0.rank0.json"));
  EXPECT_EQ(Alive("01A"), 0u);
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

}  // namespace
}  // namespace assay
