#include "common/config/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Said(const absl::Status& status) { return std::string(status.message()); }

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    char name[] = "/tmp/assay-settings-XXXXXX";
    folder_ = mkdtemp(name);
    environment_["ASSAY_STATE"] = folder_;
  }
  ~SettingsTest() override { std::filesystem::remove_all(folder_); }

  Settings Of(Program program) {
    return Settings(program, [this](const char* name) -> const char* {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    });
  }
  std::string Write(const std::string& text, const std::string& name = "config.yaml") {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  std::string Refusal(const std::string& text, Program program = Program::kCoordinator) {
    Write(text);
    Settings settings = Of(program);
    const absl::Status status = settings.Resolve();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << Said(status);
    return Said(status);
  }

  std::string folder_;
  std::map<std::string, std::string> environment_;
};

TEST_F(SettingsTest, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  const std::string file = Write("# ours\nidle-exit: 5\nlisten: h:1\nlog-level: debug\n");
  environment_["ASSAY_LISTEN"] = "h:2";
  environment_["ASSAY_LOG_LEVEL"] = "warn";
  Settings settings = Of(Program::kCoordinator);
  settings.SetFlag("log-level", {"error"});
  ASSERT_TRUE(settings.Resolve().ok());
  EXPECT_EQ(settings.Text("log-level"), "error");
  EXPECT_EQ(settings.Source("log-level"), "--log-level");
  EXPECT_EQ(settings.Text("listen"), "h:2");
  EXPECT_EQ(settings.Source("listen"), "ASSAY_LISTEN");
  EXPECT_EQ(settings.Seconds("idle-exit", 60), 5);
  EXPECT_EQ(settings.Source("idle-exit"), file + ":2");
  EXPECT_FALSE(settings.Flag("local"));
  EXPECT_EQ(settings.Source("local"), "default");
}

TEST_F(SettingsTest, EveryProgramHasATransport) {
  Write("tls-ca: ca.crt\ntls-cert: my.crt\ntls-key: my.key\ninsecure: false\n");
  for (const Program program : {Program::kCli, Program::kCoordinator, Program::kAgent}) {
    Settings settings = Of(program);
    ASSERT_TRUE(settings.Resolve().ok());
    EXPECT_EQ(TransportOf(settings).tls, (TlsFiles{"ca.crt", "my.crt", "my.key"}));
    EXPECT_FALSE(TransportOf(settings).insecure);
  }
}

TEST_F(SettingsTest, KeyOfAnotherProgramIsCheckedAndLeftAlone) {
  Write("devices: cpu\nlocal: true\n");
  Settings agent = Of(Program::kAgent);
  ASSERT_TRUE(agent.Resolve().ok());
  EXPECT_EQ(agent.Text("devices"), "cpu");
  EXPECT_THAT(agent.Printed(), Not(HasSubstr("local")));
  EXPECT_THAT(Refusal("local: maybe\n", Program::kAgent), HasSubstr("config.yaml:1:8: local: "));
}

TEST_F(SettingsTest, UnknownKeyIsRefusedWithPlaceAndNearestSpelling) {
  EXPECT_EQ(Refusal("log-levl: info\n"),
            folder_ + "/config.yaml:1:1: log-levl: unknown key; did you mean 'log-level'?");
}

TEST_F(SettingsTest, EachFaultIsALineWithItsPlace) {
  const std::string said = Refusal("idle-exit: soon\nlog-level: loud\nlocal: yes\nlisten: [a]\n");
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 3) << said;
  EXPECT_THAT(said, HasSubstr(":2:12: log-level: unknown level 'loud'"));
}

TEST_F(SettingsTest, HostileFilesAreRefused) {
  EXPECT_THAT(Refusal("a: &x [*x]\n"), HasSubstr("config.yaml:1:"));
  EXPECT_THAT(Refusal("listen: a\nlisten: b\n"), HasSubstr("twice"));
  EXPECT_THAT(Refusal("- listen\n"), HasSubstr("a map is wanted"));
  EXPECT_THAT(Refusal(std::string(70'000, '#')), HasSubstr("larger than"));
  EXPECT_THAT(Refusal("state: /elsewhere\n"), HasSubstr("--state"));
}

TEST_F(SettingsTest, BadVariableIsRefusedByItsName) {
  environment_["ASSAY_IDLE_EXIT"] = "-1";
  Settings settings = Of(Program::kCoordinator);
  EXPECT_EQ(Said(settings.Resolve()), "ASSAY_IDLE_EXIT: '-1' is no number of seconds from 0");
}

TEST_F(SettingsTest, NamedFileMustExistAndTheDefaultOneNeedNot) {
  Settings without = Of(Program::kCli);
  EXPECT_TRUE(without.Resolve().ok());
  EXPECT_EQ(without.file(), "");
  Settings named = Of(Program::kCli);
  named.SetFlag("config", {folder_ + "/other.yaml"});
  EXPECT_THAT(Said(named.Resolve()), HasSubstr("other.yaml"));
}

TEST_F(SettingsTest, PrintedSettingsAreAFileThatSaysTheSame) {
  Settings settings = Of(Program::kCoordinator);
  settings.SetFlag("listen", {"[::1]:7"});
  settings.SetFlag("idle-exit", {"2.5"});
  settings.SetFlag("agent-arg", {"--node", "a \"b\": #c"});
  ASSERT_TRUE(settings.Resolve().ok());
  EXPECT_THAT(settings.Printed(), HasSubstr("# --listen"));
  const std::string file = Write(settings.Printed(), "printed.yaml");
  environment_.clear();
  Settings again = Of(Program::kCoordinator);
  again.SetFlag("config", {file});
  const absl::Status status = again.Resolve();
  ASSERT_TRUE(status.ok()) << Said(status) << "\n" << settings.Printed();
  EXPECT_EQ(again.Text("listen"), "[::1]:7");
  EXPECT_EQ(again.Seconds("idle-exit", 0), 2.5);
  EXPECT_THAT(again.List("agent-arg"), ElementsAre("--node", "a \"b\": #c"));
  EXPECT_EQ(again.Text("state"), folder_);
}

}  // namespace
}  // namespace assay
