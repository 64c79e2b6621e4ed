#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace assay::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Parsed Parse(const std::vector<std::string>& words,
             const std::map<std::string, std::string>& environment = {}) {
  return ParseArguments(words, [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

std::string RefusedWith(const std::vector<std::string>& words) {
  const Parsed parsed = Parse(words);
  EXPECT_FALSE(parsed.arguments.has_value());
  EXPECT_EQ(parsed.exit_code, 2);
  return parsed.err;
}

TEST(Arguments, RunTakesItsFileAndFlags) {
  const Parsed parsed = Parse({"run", "m.yaml", "--new", "--yes", "--format", "json"});
  ASSERT_TRUE(parsed.arguments.has_value()) << parsed.err;
  EXPECT_EQ(parsed.arguments->command, Command::kRun);
  EXPECT_EQ(parsed.arguments->file, "m.yaml");
  EXPECT_TRUE(parsed.arguments->force_new);
  EXPECT_TRUE(parsed.arguments->yes);
  EXPECT_FALSE(parsed.arguments->detach);
  EXPECT_EQ(parsed.arguments->format, Format::kJson);
}

TEST(Arguments, LabelsAreRepeatedAndLeaveTheFileAlone) {
  const Parsed parsed = Parse({"run", "--label", "a=1", "m.yaml", "--label=b=x y"});
  ASSERT_TRUE(parsed.arguments.has_value()) << parsed.err;
  EXPECT_EQ(parsed.arguments->file, "m.yaml");
  EXPECT_EQ(parsed.arguments->labels, (Labels{{"a", "1"}, {"b", "x y"}}));
  EXPECT_EQ(Parse({"ls", "--label", "a=1"}).arguments->labels, (Labels{{"a", "1"}}));
  EXPECT_THAT(RefusedWith({"run", "m.yaml", "--label", "A=1"}), HasSubstr("is no label name"));
  EXPECT_THAT(RefusedWith({"ls", "--label", "a"}), HasSubstr("has no '='"));
}

TEST(Arguments, ASliceIsNamedByItsJobArray) {
  const std::map<std::string, std::string> slurm = {{"SLURM_ARRAY_JOB_ID", "4711"}};
  EXPECT_EQ(Parse({"run", "m.yaml", "--slice", "2/4"}).arguments->slice, (Slice{2, 4, ""}));
  EXPECT_EQ(Parse({"run", "m.yaml", "--slice", "2/4"}, slurm).arguments->slice,
            (Slice{2, 4, "4711"}));
  EXPECT_EQ(Parse({"run", "m.yaml", "--slice", "2/4", "--slice-id", "x"}, slurm).arguments->slice,
            (Slice{2, 4, "x"}));
  // In a job of an array, a whole matrix stays a whole one.
  EXPECT_TRUE(Parse({"run", "m.yaml"}, slurm).arguments->slice.IsWhole());
  EXPECT_THAT(RefusedWith({"run", "m.yaml", "--slice", "0/4"}), HasSubstr("a slice is I/N"));
  EXPECT_THAT(RefusedWith({"run", "m.yaml", "--slice-id", "x"}), HasSubstr("without --slice"));
  EXPECT_THAT(RefusedWith({"run", "m.yaml", "--slice", "1/2", "--new"}), HasSubstr("--slice-id"));
}

TEST(Arguments, ResumeIsNotANewRun) {
  EXPECT_TRUE(Parse({"run", "m.yaml", "--resume"}).arguments->resume);
  EXPECT_THAT(RefusedWith({"run", "m.yaml", "--resume", "--new"}), HasSubstr("one of them"));
  EXPECT_THAT(RefusedWith({"run", "m.yaml", "--resume", "--label", "a=1"}),
              HasSubstr("keeps the labels"));
}

TEST(Arguments, CompareTakesRunsAndWhatIsHeldAgainstWhat) {
  const Parsed parsed =
      Parse({"compare", "01A", "01B", "--by", "run", "--score", "best", "--where",
             "model=resnet50,precision=fp32", "--across", "lane", "--format", "md"});
  ASSERT_TRUE(parsed.arguments.has_value()) << parsed.err;
  const CompareArguments& compare = parsed.arguments->compare;
  EXPECT_EQ(parsed.arguments->command, Command::kCompare);
  EXPECT_THAT(compare.runs, ElementsAre("01A", "01B"));
  EXPECT_EQ(compare.options.by, compare::By::kRun);
  EXPECT_EQ(compare.options.score, compare::Score::kBest);
  EXPECT_THAT(compare.options.where,
              ElementsAre(std::pair("model", "resnet50"), std::pair("precision", "fp32")));
  EXPECT_THAT(compare.options.across, ElementsAre("lane"));
  EXPECT_EQ(parsed.arguments->format, Format::kMarkdown);
  EXPECT_TRUE(Parse({"compare"}).arguments->compare.runs.empty());
  EXPECT_THAT(RefusedWith({"compare", "--by", "gpu"}), HasSubstr("--by takes card, stack"));
  EXPECT_THAT(RefusedWith({"compare", "--score", "mean"}), HasSubstr("--score takes equal"));
  EXPECT_THAT(RefusedWith({"compare", "--stack", "old"}), HasSubstr("--stack takes common"));
  EXPECT_THAT(RefusedWith({"compare", "--where", "model"}), HasSubstr("FIELD=VALUE"));
  EXPECT_THAT(RefusedWith({"compare", "--format", "xml"}), HasSubstr("table, md, csv or json"));
  EXPECT_THAT(RefusedWith({"results", "last", "--format", "md"}), HasSubstr("table, json or csv"));
  EXPECT_THAT(RefusedWith({"compare", "--by", "node", "--baseline", "n1"}),
              HasSubstr("fleet's median"));
}

TEST(Arguments, DrainTakesANodeAndWhetherToWait) {
  const Parsed parsed = Parse({"drain", "node7", "--wait"});
  ASSERT_TRUE(parsed.arguments.has_value()) << parsed.err;
  EXPECT_EQ(parsed.arguments->command, Command::kDrain);
  EXPECT_EQ(parsed.arguments->node, "node7");
  EXPECT_TRUE(parsed.arguments->wait);
  EXPECT_EQ(Parse({"undrain", "node7"}).arguments->command, Command::kUndrain);
  EXPECT_THAT(RefusedWith({"drain"}), HasSubstr("NODE is required"));
  EXPECT_THAT(RefusedWith({"undrain", "node7", "--wait"}), HasSubstr("has no flag --wait"));
}

TEST(Arguments, DoctorIsForHereOrForANode) {
  Parsed parsed = Parse({"doctor"});
  ASSERT_TRUE(parsed.arguments.has_value()) << parsed.err;
  EXPECT_EQ(parsed.arguments->command, Command::kDoctor);
  EXPECT_EQ(parsed.arguments->node, "");
  parsed = Parse({"doctor", "--node", "n1", "--format", "json"});
  ASSERT_TRUE(parsed.arguments.has_value()) << parsed.err;
  EXPECT_EQ(parsed.arguments->node, "n1");
  EXPECT_THAT(RefusedWith({"doctor", "--format", "csv"}), HasSubstr("table or json"));
  EXPECT_THAT(RefusedWith({"doctor", "--runner", "x", "--node", "n1"}), HasSubstr("--node"));
  EXPECT_THAT(RefusedWith({"doctor", "--cell-seconds", "5"}), HasSubstr("--runner"));
  parsed = Parse({"doctor", "--runner", "x", "--cell-seconds", "5"});
  ASSERT_TRUE(parsed.arguments.has_value()) << parsed.err;
  EXPECT_EQ(parsed.arguments->runner, "x");
  EXPECT_EQ(parsed.arguments->cell_seconds, 5);
}

TEST(Arguments, GlobalFlagsStandBeforeOrAfterTheCommand) {
  for (const auto& words : {std::vector<std::string>{"--state", "/s", "-q", "ls"},
                            std::vector<std::string>{"ls", "--state", "/s", "--quiet"}}) {
    const Parsed parsed = Parse(words);
    ASSERT_TRUE(parsed.arguments.has_value()) << parsed.err;
    EXPECT_EQ(parsed.arguments->state.value, "/s");
    EXPECT_TRUE(parsed.arguments->quiet);
  }
}

TEST(Arguments, FlagBeatsEnvironmentAndSaysWhereItCameFrom) {
  const std::map<std::string, std::string> environment = {{"ASSAY_STATE", "/env"},
                                                          {"ASSAY_COORDINATOR", "h:1"}};
  const Parsed parsed = Parse({"--state", "/flag", "ls"}, environment);
  ASSERT_TRUE(parsed.arguments.has_value());
  EXPECT_EQ(parsed.arguments->state.value, "/flag");
  EXPECT_EQ(parsed.arguments->state.source, "--state");
  EXPECT_EQ(parsed.arguments->coordinator.value, "h:1");
  EXPECT_EQ(parsed.arguments->coordinator.source, "ASSAY_COORDINATOR");
  EXPECT_FALSE(parsed.arguments->LocalMode());
  EXPECT_EQ(Parse({"ls"}).arguments->state.source, "default");
}

TEST(Arguments, PlanAsksAFleetOnlyWhenItsCommandLineSaysSo) {
  EXPECT_FALSE(Parse({"plan", "m.yaml"}, {{"ASSAY_COORDINATOR", "h:1"}}).arguments->fleet);
  EXPECT_TRUE(Parse({"plan", "m.yaml", "--coordinator", "h:1"}).arguments->fleet);
}

TEST(Arguments, NoColorVariableCountsWhenNotEmpty) {
  EXPECT_TRUE(Parse({"ls"}, {{"NO_COLOR", "1"}}).arguments->no_color);
  EXPECT_FALSE(Parse({"ls"}, {{"NO_COLOR", ""}}).arguments->no_color);
}

TEST(Arguments, UnknownCommandGivesTheNearest) {
  EXPECT_THAT(RefusedWith({"resluts", "last"}), HasSubstr("'results'"));
}

TEST(Arguments, UnknownFlagGivesTheNearest) {
  EXPECT_THAT(RefusedWith({"ls", "--formt", "json"}), HasSubstr("--format"));
}

TEST(Arguments, CommandsOfLaterVersionsAreNamedAsSuch) {
  EXPECT_THAT(RefusedWith({"report"}), HasSubstr("not offered yet"));
}

TEST(Arguments, NoCommandIsBadInputWithTheHelpOnStandardError) {
  EXPECT_THAT(RefusedWith({}), HasSubstr("Usage:"));
  EXPECT_THAT(RefusedWith({"--quiet"}), HasSubstr("say what to do"));
}

TEST(Arguments, FormatNamesWhatItTakes) {
  EXPECT_THAT(RefusedWith({"run", "m", "--format", "xml"}), HasSubstr("table, json or csv"));
  EXPECT_THAT(RefusedWith({"agents", "--format", "csv"}), HasSubstr("table or json"));
}

TEST(Arguments, CellIsANumberFromOne) {
  EXPECT_EQ(Parse({"show", "last", "7"}).arguments->cell, 7u);
  EXPECT_EQ(Parse({"show", "last"}).arguments->cell, std::nullopt);
  for (const char* cell : {"0", "-3", "x", "7x", "99999999999999999999"}) {
    const Parsed parsed = Parse({"show", "last", cell});
    EXPECT_FALSE(parsed.arguments.has_value()) << cell;
    EXPECT_EQ(parsed.exit_code, 2) << cell;
  }
}

TEST(Arguments, CardsAreSplitAtCommasAndDoNotSwallowTheFile) {
  const Parsed parsed = Parse({"plan", "--cards", "RTX 3090, RTX 2080 Ti", "m.yaml"});
  ASSERT_TRUE(parsed.arguments.has_value()) << parsed.err;
  EXPECT_THAT(parsed.arguments->cards, ElementsAre("RTX 3090", "RTX 2080 Ti"));
  EXPECT_EQ(parsed.arguments->file, "m.yaml");
}

TEST(Arguments, RequiredWordsAreNamed) {
  EXPECT_THAT(RefusedWith({"run"}), HasSubstr("FILE"));
  EXPECT_THAT(RefusedWith({"plan"}), HasSubstr("FILE"));
  EXPECT_THAT(RefusedWith({"watch"}), HasSubstr("RUN"));
  EXPECT_THAT(RefusedWith({"reproduce", "last"}), HasSubstr("CELL"));
  EXPECT_THAT(RefusedWith({"export", "last"}), HasSubstr("--output"));
  EXPECT_THAT(RefusedWith({"rerun", "last"}), HasSubstr("--failed"));
  EXPECT_THAT(RefusedWith({"merge"}), HasSubstr("FILE"));
}

TEST(Arguments, TooManyWordsAreBadInput) {
  EXPECT_THAT(RefusedWith({"ls", "extra"}), HasSubstr("extra"));
  EXPECT_THAT(RefusedWith({"run", "a.yaml", "b.yaml"}), HasSubstr("b.yaml"));
}

TEST(Arguments, HelpOfEveryCommandHasAnExampleAndEndsWithZero) {
  for (const char* command : {"plan", "run", "watch", "ls", "show", "results", "agents", "cancel",
                              "rerun", "export", "merge", "reproduce", "version"}) {
    const Parsed parsed = Parse({command, "--help"});
    EXPECT_FALSE(parsed.arguments.has_value()) << command;
    EXPECT_EQ(parsed.exit_code, 0) << command;
    EXPECT_THAT(parsed.out, HasSubstr("Example")) << command;
    EXPECT_THAT(parsed.out, HasSubstr(std::string("assay ") + command)) << command;
  }
}

TEST(Arguments, GeneralHelpListsCommandsAndExitCodes) {
  const Parsed parsed = Parse({"--help"});
  EXPECT_EQ(parsed.exit_code, 0);
  for (const char* part : {"reproduce", "Exit codes", "130", "--state", "--coordinator"}) {
    EXPECT_THAT(parsed.out, HasSubstr(part));
  }
}

TEST(Arguments, VersionFlagIsTheVersionCommand) {
  EXPECT_EQ(Parse({"--version"}).arguments->command, Command::kVersion);
}

TEST(Arguments, DetachWithAFormatIsRefused) {
  EXPECT_THAT(RefusedWith({"run", "m", "--detach", "--format", "json"}), HasSubstr("--detach"));
}

TEST(Arguments, ControlCharactersOfAWordDoNotReachTheSentence) {
  EXPECT_EQ(RefusedWith({"\x1B[31mrum"}).find('\x1B'), std::string::npos);
  EXPECT_EQ(RefusedWith({"ls", "--x\x1B[31m"}).find('\x1B'), std::string::npos);
}

TEST(Arguments, CertsTakesWhatIsMadeAndForWhom) {
  using What = CertsArguments::What;
  const Parsed parsed = Parse({"certs", "coordinator", "--host", "a.example", "--host", "10.0.0.1",
                               "--dir", "d", "--renew"});
  ASSERT_TRUE(parsed.arguments.has_value()) << parsed.err;
  EXPECT_EQ(parsed.arguments->command, Command::kCerts);
  EXPECT_EQ(parsed.arguments->certs.what, What::kCoordinator);
  EXPECT_THAT(parsed.arguments->certs.hosts, ElementsAre("a.example", "10.0.0.1"));
  EXPECT_EQ(parsed.arguments->certs.dir, "d");
  EXPECT_TRUE(parsed.arguments->certs.renew);
  const Parsed user = Parse({"certs", "user", "al", "--role", "submit", "--days", "7"});
  ASSERT_TRUE(user.arguments.has_value()) << user.err;
  EXPECT_EQ(user.arguments->certs.role, Role::kSubmit);
  EXPECT_EQ(user.arguments->certs.days, 7);
  EXPECT_EQ(Parse({"certs", "list"}).arguments->certs.what, What::kList);
}

TEST(Arguments, CertsSaysWhatIsMissing) {
  EXPECT_THAT(RefusedWith({"certs", "user", "al"}), HasSubstr("--role view, submit or admin"));
  EXPECT_THAT(RefusedWith({"certs", "user", "al", "--role", "root"}), HasSubstr("no role"));
  EXPECT_THAT(RefusedWith({"certs", "agent"}), HasSubstr("NODE"));
  EXPECT_THAT(RefusedWith({"certs", "agent", "n", "--days", "-1"}), HasSubstr("--days"));
  EXPECT_THAT(RefusedWith({"certs", "agent", "n", "--dayz", "1"}),
              HasSubstr("did you mean '--days'"));
  EXPECT_NE(RefusedWith({"certs"}), "");
}

TEST(Arguments, TlsFilesOfFlagsBeatThoseOfTheEnvironment) {
  const Parsed parsed =
      Parse({"ls", "--tls-ca", "flag"}, {{"ASSAY_TLS_CA", "env"}, {"ASSAY_TLS_KEY", "key"}});
  ASSERT_TRUE(parsed.arguments.has_value()) << parsed.err;
  EXPECT_EQ(parsed.arguments->transport.tls.ca, "flag");
  EXPECT_EQ(parsed.arguments->transport.tls.key, "key");
  EXPECT_FALSE(parsed.arguments->transport.insecure);
  EXPECT_TRUE(Parse({"ls", "--insecure"}).arguments->transport.insecure);
}

}  // namespace
}  // namespace assay::cli
