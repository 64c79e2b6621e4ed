// agents, drain and undrain.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "cli_fixture.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class CliAgents : public CliTest {};

TEST_F(CliAgents, DrainSaysWhatStillRuns) {
  FakeScript script;
  script.held = 1;
  Serve(script);
  const Finished busy = Assay({"drain", "node-1"});
  EXPECT_EQ(busy.code, 0) << busy.err;
  EXPECT_EQ(busy.out, "node-1 is draining; still there: run 01JHELD cell 0\n");
  EXPECT_EQ(Assay({"drain", "node-1"}).out, "node-1 is drained: nothing runs there\n");
  EXPECT_EQ(Assay({"undrain", "node-1"}).out, "node-1 takes cells again\n");
}

TEST_F(CliAgents, AListOfManyPagesIsReadToItsEnd) {
  FakeScript script;
  script.agent_pages = 3;
  Serve(script);
  const Finished listed = Assay({"agents", "--format", "json"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  const Json agents = Json::parse(listed.out).at("agents");
  ASSERT_EQ(agents.size(), 4u);
  EXPECT_EQ(agents.at(0).at("node"), "a-0001");
  EXPECT_EQ(agents.at(3).at("node"), "node-1");
}

TEST_F(CliAgents, AListThatDoesNotEndIsAnError) {
  FakeScript script;
  script.agent_pages = 1000;
  script.same_page = true;
  Serve(script);
  const Finished listed = Assay({"agents"});
  EXPECT_NE(listed.code, 0);
  EXPECT_THAT(listed.err, HasSubstr("a list of agents that does not end"));
}

TEST_F(CliAgents, DrainAsJson) {
  FakeScript script;
  script.held = 1;
  Serve(script);
  const Json json = Json::parse(Assay({"drain", "node-1", "--format", "json"}).out);
  EXPECT_EQ(json.at("node"), "node-1");
  EXPECT_EQ(json.at("state"), "draining");
  EXPECT_EQ(json.at("draining"), true);
  EXPECT_EQ(json.at("held").at(0).at("run"), "01JHELD");
}

TEST_F(CliAgents, DrainWaitsUntilNothingRuns) {
  FakeScript script;
  script.held = 3;
  Serve(script);
  const Finished done = Assay({"drain", "node-1", "--wait"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, "node-1 is drained: nothing runs there\n");
  EXPECT_EQ(done.err, "waiting for run 01JHELD cell 0\n");
}

TEST_F(CliAgents, CtrlCStopsTheWaitingAndTheDrainStands) {
  FakeScript script;
  script.held = 1'000'000;
  Serve(script);
  AssayProcess process({"drain", "node-1", "--wait"}, Options());
  ASSERT_TRUE(process.WaitForText("waiting for"));
  process.Signal(SIGINT);
  const Finished done = process.Wait();
  EXPECT_EQ(done.code, 130);
  EXPECT_THAT(done.err, HasSubstr("stopped waiting; node-1 goes on draining"));
}

TEST_F(CliAgents, AWaitEndsWhenSomebodyUndrains) {
  FakeScript script;
  script.held = 1'000'000;
  Serve(script);
  AssayProcess process({"drain", "node-1", "--wait"}, Options());
  ASSERT_TRUE(process.WaitForText("waiting for"));
  EXPECT_EQ(Assay({"undrain", "node-1"}).code, 0);
  const Finished done = process.Wait();
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("somebody undrained node-1 meanwhile"));
}

TEST_F(CliAgents, WatchPrintsALineAChangeAndEndsWithZero) {
  Serve();
  AssayProcess process({"agents", "--watch"}, Options());
  ASSERT_TRUE(process.WaitForText("node-1 up: 1 x RTX 3090"));
  EXPECT_EQ(Assay({"drain", "node-1"}).code, 0);
  ASSERT_TRUE(process.WaitForText("node-1 drained: "));
  process.Signal(SIGINT);
  const Finished done = process.Wait();
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(std::count(done.out.begin(), done.out.end(), '\n'), 2) << done.out;
  EXPECT_THAT(done.out, ::testing::ContainsRegex("^20[0-9-]+T[0-9:.]+Z node-1 up"));
}

TEST_F(CliAgents, WatchAsJsonIsAnObjectALine) {
  Serve();
  AssayProcess process({"agents", "--watch", "--format", "json"}, Options());
  ASSERT_TRUE(process.WaitForText("\"up\""));
  EXPECT_EQ(Assay({"drain", "node-1"}).code, 0);
  ASSERT_TRUE(process.WaitForText("\"drained\""));
  process.Signal(SIGINT);
  const Finished done = process.Wait();
  EXPECT_EQ(done.code, 0);
  const size_t end = done.out.find('\n');
  EXPECT_EQ(Json::parse(done.out.substr(0, end)).at("state"), "up");
  EXPECT_EQ(Json::parse(done.out.substr(end)).at("state"), "drained");
}

TEST_F(CliAgents, WatchOnATerminalRedrawsAndGivesTheCursorBack) {
  Serve();
  ProcessOptions options = Options();
  options.terminal = true;
  AssayProcess process({"agents", "--watch"}, options);
  ASSERT_TRUE(process.WaitForText("1 x RTX 3090"));
  EXPECT_EQ(Assay({"drain", "node-1"}).code, 0);
  ASSERT_TRUE(process.WaitForText("drained"));
  process.Signal(SIGINT);
  const Finished done = process.Wait();
  EXPECT_EQ(done.code, 0);
  EXPECT_THAT(done.out, HasSubstr("\x1B[2A\x1B[J"));  // heading and node
  EXPECT_NE(done.out.find("\x1B[?25l"), std::string::npos);
  EXPECT_GT(done.out.rfind("\x1B[?25h") + 1, done.out.rfind("\x1B[?25l") + 1);
}

TEST_F(CliAgents, WatchGoesOnWhenTheCoordinatorIsStartedAnew) {
  Serve();
  const std::string address = server_->address();
  AssayProcess process({"agents", "--watch", "--coordinator", address}, Options());
  ASSERT_TRUE(process.WaitForText("node-1 up"));
  server_.reset();
  ASSERT_TRUE(process.WaitForText("the coordinator is away"));
  Serve();
  EXPECT_EQ(Assay({"drain", "node-1"}).code, 0);
  EXPECT_TRUE(process.WaitForText("node-1 drained"));
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait().code, 0);
}

TEST_F(CliAgents, WatchEndsWhenNobodyReads) {
  Serve();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ProcessOptions options = Options();
  options.out_fd = ends[1];
  AssayProcess process({"agents", "--watch"}, options);
  close(ends[1]);
  char first = 0;
  ASSERT_EQ(read(ends[0], &first, 1), 1);
  close(ends[0]);
  const Finished done = process.Wait();
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.err, "");
}

TEST_F(CliAgents, DrainOfAnUnknownNodeIsExitTwo) {
  Serve();
  for (const char* command : {"drain", "undrain"}) {
    const Finished done = Assay({command, "node-2"});
    EXPECT_EQ(done.code, 2) << command;
    EXPECT_EQ(done.out, "");
    EXPECT_EQ(done.err, "assay: there is no node\n");
  }
}

}  // namespace
}  // namespace assay::cli
