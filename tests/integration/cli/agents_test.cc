// agents, drain and undrain.
#include <gmock/gmock.h>
#include <signal.h>

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
