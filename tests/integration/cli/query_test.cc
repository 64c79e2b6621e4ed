// ls, show, results, agents, export, merge, reproduce, plan and version.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "cli_fixture.h"
#include "common/text/utf8.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class CliQuery : public CliTest {
 protected:
  FakeControl& ServeOneRun(FakeScript script = {}) {
    FakeControl& control = Serve(std::move(script));
    control.AddRun(kRunId, "cards-cnn");
    return control;
  }
  static std::string Text(const std::string& path) {
    std::ifstream in(path);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
};

TEST_F(CliQuery, LsAsJsonHasTheStatedFields) {
  FakeScript script;
  script.outcomes = {"ok", "fail", "hung"};
  ServeOneRun(script);
  const Json json = Json::parse(Assay({"ls", "--format", "json"}).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  const Json& run = json.at("runs").at(0);
  EXPECT_EQ(run.size(), 9u);
  EXPECT_TRUE(run.at("slices").is_null());
  EXPECT_EQ(run.at("labels"), Json::object());
  EXPECT_EQ(run.at("id"), kRunId);
  EXPECT_EQ(run.at("name"), "cards-cnn");
  EXPECT_EQ(run.at("state"), "done");
  EXPECT_EQ(run.at("cells"), 3);
  EXPECT_EQ(run.at("ok"), 1);
  EXPECT_EQ(run.at("failed"), 2);
  EXPECT_EQ(run.at("started_at"), "2026-03-29T01:30:00.250Z");
}

TEST_F(CliQuery, LsShowsLabelsAndFiltersByAllThatWereGiven) {
  Serve();
  EXPECT_EQ(Assay({"run", Matrix(), "--new", "--label", "team=cnn", "--label", "x=1"}).code, 0);
  EXPECT_EQ(Assay({"run", Matrix(), "--new", "--label", "team=cnn"}).code, 0);
  EXPECT_EQ(Assay({"run", Matrix(), "--new"}).code, 0);
  EXPECT_THAT(Assay({"ls"}).out, HasSubstr("team=cnn x=1"));
  const auto count = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"ls", "--format", "json"});
    return Json::parse(Assay(words).out).at("runs").size();
  };
  EXPECT_EQ(count({}), 3u);
  EXPECT_EQ(count({"--label", "team=cnn"}), 2u);
  EXPECT_EQ(count({"--label", "team=cnn", "--label", "x=1"}), 1u);
  EXPECT_EQ(count({"--label", "team=nlp"}), 0u);
  EXPECT_THAT(Assay({"ls", "--label", "team=nlp"}).err, HasSubstr("no runs with team=nlp"));
}

TEST_F(CliQuery, ACoordinatorOfAnotherVersionIsAWarning) {
  FakeScript script;
  script.version = "9.8.7";
  ServeOneRun(script);
  const Finished done = Assay({"ls"});
  EXPECT_EQ(done.code, 0);
  EXPECT_THAT(done.err, HasSubstr("warning: the coordinator is version 9.8.7"));
  EXPECT_EQ(Assay({"ls", "--quiet"}).err, "");
}

TEST_F(CliQuery, LsOfNothingIsAnEmptyList) {
  Serve();
  EXPECT_EQ(Json::parse(Assay({"ls", "--format", "json"}).out), Json({{"runs", Json::array()}}));
  EXPECT_EQ(Assay({"ls"}).code, 0);
}

// Case 55: times are ISO 8601 with Z, in any zone.
TEST_F(CliQuery, TimesDoNotDependOnTheZone) {
  ServeOneRun();
  EXPECT_EQ(Assay({"ls"}, {"TZ=Asia/Kathmandu"}).out, Assay({"ls"}, {"TZ=Europe/Berlin"}).out);
}

TEST_F(CliQuery, NumbersDoNotDependOnTheLocale) {
  ServeOneRun();
  for (const char* format : {"table", "json", "csv"}) {
    EXPECT_EQ(Assay({"results", "last", "--format", format}, {"LC_ALL=de_DE.UTF-8"}).out,
              Assay({"results", "last", "--format", format}, {"LC_ALL=C"}).out);
  }
}

TEST_F(CliQuery, UnknownRunAndCellAreExitTwo) {
  ServeOneRun();
  for (const auto& words : {std::vector<std::string>{"show", "nothing"},
                            {"show", "nothing", "1"},
                            {"show", "last", "99"},
                            {"results", "nothing"},
                            {"watch", "nothing"},
                            {"cancel", "nothing"},
                            {"rerun", "nothing", "--failed"},
                            {"export", "nothing", "-o", dir_ + "/f"},
                            {"reproduce", "nothing", "1"}}) {
    const Finished done = Assay(words);
    EXPECT_EQ(done.code, 2) << words[0] << done.err;
    EXPECT_THAT(done.err, HasSubstr("there is no")) << words[0];
    EXPECT_EQ(done.out, "") << words[0];
  }
}

TEST_F(CliQuery, ShowRunHasCountsAndWhyCellsAreNotOk) {
  FakeScript script;
  script.outcomes = {"ok", "fail", "mem_limit"};
  ServeOneRun(script);
  const Finished done = Assay({"show", "last"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("1 ok, 1 mem_limit, 1 fail"));
  EXPECT_THAT(done.out, HasSubstr("cell 2"));
  EXPECT_THAT(done.out, HasSubstr("it broke"));
}

TEST_F(CliQuery, ShowCellHasRecordAttemptsAndLog) {
  FakeScript script;
  script.outcomes = {"ok", "fail"};
  ServeOneRun(script);
  const Finished done = Assay({"show", "last", "2"});
  EXPECT_EQ(done.code, 0) << done.err;
  for (const char* part :
       {"fail, crash: it broke", "attempt 1 on node-1", "| line one", "| line two", "GPU-1"}) {
    EXPECT_THAT(done.out, HasSubstr(part));
  }
  EXPECT_THAT(Assay({"show", "last", "1"}).out, HasSubstr("800.5 img/s"));
}

TEST_F(CliQuery, AMalignantLogCannotDriveTheTerminal) {
  FakeScript script;
  script.outcomes = {"fail"};
  script.log_tail = "\x1B]0;owned\a\x1B[2Jcleared\x1B[31m\r\nnext\b\b";
  script.message = "\x1B[5mblink";
  ServeOneRun(script);
  const Finished done = Assay({"show", "last", "1"});
  EXPECT_EQ(done.out.find('\x1B'), std::string::npos);
  EXPECT_EQ(done.out.find('\b'), std::string::npos);
  EXPECT_THAT(done.out, HasSubstr("| cleared\n"));
}

// Case 12: any name that a driver may give.
TEST_F(CliQuery, OddCardNamesKeepEveryOutputWellFormed) {
  for (const std::string& name :
       {std::string("NVIDIA Graphics Device"), std::string("GRID V100DX-16Q"), std::string(),
        std::string(96, 'x'), std::string("a \"q\", b\nnew — dash"), std::string("測試 卡")}) {
    FakeScript script;
    script.card = name;
    ServeOneRun(script);
    const Json rows =
        Json::parse(Assay({"results", "last", "--format", "json"}).out, nullptr, false);
    ASSERT_TRUE(rows.is_array()) << name;
    EXPECT_EQ(rows[0].at("card"), name.empty() ? Json("") : Json(name)) << name;
    EXPECT_TRUE(IsUtf8(Assay({"results", "last"}).out));
    EXPECT_EQ(Assay({"agents"}).code, 0);
    const Json agents = Json::parse(Assay({"agents", "--format", "json"}).out, nullptr, false);
    EXPECT_TRUE(agents.is_object()) << name;
    server_.reset();
  }
}

TEST_F(CliQuery, ResultsAsCsvHasAHeaderAndOneLineACell) {
  ServeOneRun();
  const std::string csv = Assay({"results", "last", "--format", "csv"}).out;
  EXPECT_THAT(csv, HasSubstr("key,index,card"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_THAT(csv, Not(HasSubstr("nan")));
}

// What LibTorch is found by may stand in the manifest alone.
TEST_F(CliQuery, ReproduceSetsWhatTheManifestOfTheStackSets) {
  FakeScript script;
  script.cell_file = R"({"stack":"torch-x","device":{"kind":"cpu"},"world_size":1})";
  ServeOneRun(script);
  Write("other.json", R"({"name":"other","program":"x","env":{"NO":"1"}})");
  Write("torch.json", R"({"name":"torch-x","program":"x","env":{"LD_LIBRARY_PATH":"/a b","N":"2",
                          "no name":"3"}})");
  const Finished done = Assay({"reproduce", "last", "1"}, {"ASSAY_STACKS=" + dir_});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("\nLD_LIBRARY_PATH='/a b' N=2 CUDA_VISIBLE_DEVICES= "));
  EXPECT_THAT(done.out, Not(HasSubstr("NO=")));
  EXPECT_THAT(done.out, Not(HasSubstr("no name")));
  EXPECT_THAT(Assay({"reproduce", "last", "1"}, {"ASSAY_STACKS=" + dir_ + "/none"}).out,
              HasSubstr("# The manifest of stack torch-x is not here"));
}

// `results` writes row by row, `run` all at once: to a reader there is no difference.
TEST_F(CliQuery, ResultsArePrintedAsTheRunPrintedThem) {
  for (const char* format : {"json", "csv"}) {
    Serve();
    const Finished run = Assay({"run", Matrix(), "--quiet", "--format", format});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(Assay({"results", "last", "--format", format}).out, run.out);
    const Finished unknown = Assay({"results", "nothing", "--format", format});
    EXPECT_EQ(unknown.out, "");
    EXPECT_EQ(unknown.code, 2);
    server_.reset();
  }
}

TEST_F(CliQuery, AgentsListsNodesCardsAndStacks) {
  Serve();
  const std::string out = Assay({"agents"}).out;
  for (const char* part : {"node-1", "up", "1 x RTX 3090 (24.0 GiB)", "simulate-1"}) {
    EXPECT_THAT(out, HasSubstr(part));
  }
  FakeScript script;
  script.agents = false;
  server_.reset();
  Serve(script);
  const Finished none = Assay({"agents", "--coordinator", server_->address()});
  EXPECT_EQ(none.code, 0);
  EXPECT_THAT(none.err, HasSubstr("no agent"));
}

TEST_F(CliQuery, ExportWritesTheWholeFile) {
  ServeOneRun();
  const std::string path = dir_ + "/f.assay";
  const Finished done = Assay({"export", "last", "-o", path});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(Text(path), "{\"assay_file\":1}\n{\"kind\":\"end\"}\n");
  EXPECT_EQ(Assay({"export", "last", "-o", dir_ + "/no/f"}).code, 2);
}

TEST_F(CliQuery, ExportToADashIsStandardOutput) {
  ServeOneRun();
  const Finished done = Assay({"export", "last", "-o", "-"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, "{\"assay_file\":1}\n{\"kind\":\"end\"}\n");
  EXPECT_EQ(done.err, "");
  EXPECT_NE(access("-", F_OK), 0);
}

// A coordinator that was killed, or a relay between: the stream is over, the file is not.
TEST_F(CliQuery, AnExportWithoutItsLastLineIsNoFile) {
  FakeControl& control = ServeOneRun();
  const std::string path = Write("f.assay", "old");
  for (const std::vector<std::string>& exported :
       {std::vector<std::string>{"{\"assay_file\":1}\n"}, std::vector<std::string>{},
        std::vector<std::string>{"{\"kind\":\"end\"}"},
        std::vector<std::string>{"{\"kind\":\"end\"}\n", "{\"kind\":\"cell\"}\n"}}) {
    control.SetExported(exported);
    const Finished done = Assay({"export", "last", "-o", path});
    EXPECT_EQ(done.code, 3);
    EXPECT_THAT(done.err, HasSubstr("before its last line"));
    EXPECT_THAT(done.err, Not(HasSubstr("written to")));
    EXPECT_EQ(Text(path), "old");
    EXPECT_EQ(Assay({"export", "last", "-o", "-"}).code, 3);
  }
}

TEST_F(CliQuery, AFailedExportLeavesTheOldFile) {
  ServeOneRun();
  const std::string path = Write("f.assay", "old");
  EXPECT_EQ(Assay({"export", "nothing", "-o", path}).code, 2);
  EXPECT_EQ(Text(path), "old");
}

TEST_F(CliQuery, MergeSendsEveryFileAndNamesTheBrokenOne) {
  FakeControl& control = Serve();
  // Larger than one chunk.
  const std::string big(1'500'000, 'a');
  const Finished done = Assay({"merge", Write("a.assay", big), Write("b.assay", "bb")});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(control.merged(), big + "bb");
  EXPECT_THAT(done.out, HasSubstr("2 attempts new, 1 known before"));
  const Finished broken = Assay({"merge", Write("c.assay", "broken")});
  EXPECT_EQ(broken.code, 2);
  EXPECT_EQ(std::count(broken.err.begin(), broken.err.end(), '\n'), 1);
  EXPECT_THAT(broken.err, HasSubstr("c.assay"));
  EXPECT_EQ(Assay({"merge", dir_ + "/missing"}).code, 2);
}

TEST_F(CliQuery, ReproduceIsAScriptThatAShellRuns) {
  const std::string runner =
      Write("my runner", "#!/bin/sh\necho \"$1 $2 $CUDA_VISIBLE_DEVICES\"\ncat\n");
  chmod(runner.c_str(), 0755);
  FakeScript script;
  script.runner = runner;
  script.cell_file =
      R"({"protocol":1,"cell":1,"device":{"kind":"cuda","uuid":"GPU-1"},"spawned_at_boot_ns":5,"note":"it's $(id) `id`"})";
  ServeOneRun(script);
  const Finished done = Assay({"reproduce", "last", "1"});
  EXPECT_EQ(done.code, 0) << done.err;
  const std::string file = Write("by_hand.sh", done.out);
  FILE* shell = popen(("sh " + file).c_str(), "r");
  ASSERT_NE(shell, nullptr);
  char buffer[4096];
  const std::string said(buffer, fread(buffer, 1, sizeof buffer, shell));
  EXPECT_EQ(pclose(shell), 0);
  EXPECT_THAT(said, HasSubstr("--cell - GPU-1\n"));
  const Json cell = Json::parse(said.substr(said.find('\n') + 1), nullptr, false);
  ASSERT_TRUE(cell.is_object()) << said;
  EXPECT_EQ(cell.at("note"), "it's $(id) `id`");
  EXPECT_EQ(cell.at("spawned_at_boot_ns"), 0);
}

TEST_F(CliQuery, ReproduceWritesTheCellFileWhereToldTo) {
  FakeScript script;
  script.cell_file = R"({"protocol":1,"cell":1,"device":{"kind":3}})";
  ServeOneRun(script);
  const std::string path = dir_ + "/cell.json";
  const Finished done = Assay({"reproduce", "last", "1", "-o", path});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("--cell " + path));
  EXPECT_EQ(Json::parse(Text(path)).at("cell"), 1);
}

TEST_F(CliQuery, ReproduceOfACellThatNeverRanIsExitTwo) {
  ServeOneRun();
  const Finished done = Assay({"reproduce", "last", "1"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("never given to a runner"));
}

TEST_F(CliQuery, VersionGivesEveryContractNumber) {
  const Json json = Json::parse(Assay({"version", "--format", "json"}).out, nullptr, false);
  for (const char* name :
       {"version", "fleet_protocol", "runner_protocol", "result_schema", "rules_version"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
}

TEST_F(CliQuery, PlanNeedsNeitherServerNorStateDirectory) {
  const std::string matrix = Matrix();
  std::filesystem::remove_all(state_);
  const Finished done = Assay({"plan", matrix, "--format", "json"});
  EXPECT_EQ(done.code, 0) << done.err;
  const Json rows = Json::parse(done.out, nullptr, false);
  ASSERT_TRUE(rows.is_array());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].size(), 18u);
  EXPECT_EQ(rows[0].at("batch"), 32);
  EXPECT_TRUE(rows[0].at("card").is_null());
  EXPECT_TRUE(rows[0].at("feasible").is_null());
  EXPECT_FALSE(std::filesystem::exists(state_));
  EXPECT_THAT(Assay({"plan", matrix}).out, HasSubstr("at most"));
  EXPECT_EQ(Assay({"plan", Write("bad.yaml", "axis: 1\n")}).code, 2);
}

TEST_F(CliQuery, PlanForCardsSaysWhatCannotRun) {
  const std::string matrix =
      Write("p.yaml", "axes:\n  model: [resnet50]\n  precision: [fp32, tf32]\n  batch: [32]\n");
  const Finished done = Assay({"plan", matrix, "--cards", "RTX 2080 Ti", "--format", "json"});
  EXPECT_EQ(done.code, 0) << done.err;
  const Json rows = Json::parse(done.out, nullptr, false);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("feasible"), true);
  EXPECT_EQ(rows[1].at("feasible"), false);
  EXPECT_EQ(rows[1].at("reason"), "unsupported_precision");
  EXPECT_EQ(Assay({"plan", matrix, "--cards", "RTX 9999 XYZ"}).code, 2);
}

TEST_F(CliQuery, PlanForTheFleetAsksTheCoordinator) {
  Serve();
  const Finished done =
      Assay({"plan", Matrix(), "--coordinator", server_->address(), "--format", "json"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(Json::parse(done.out).at(0).at("feasible").is_boolean());
}

TEST_F(CliQuery, SchemaIsJson) {
  EXPECT_TRUE(Json::parse(Assay({"plan", "--schema"}).out, nullptr, false).is_object());
}

TEST_F(CliQuery, PrintConfigSaysWhereAValueCameFrom) {
  const std::string out = Assay({"--print-config"}).out;
  EXPECT_THAT(out, HasSubstr(state_));
  EXPECT_THAT(out, HasSubstr("# ASSAY_STATE"));
}

}  // namespace
}  // namespace assay::cli
