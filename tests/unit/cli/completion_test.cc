#include "cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Tree {
  Tree() {
    app.add_option("--state", text, "Where")->type_name("DIR");
    CLI::App* go = app.add_subcommand("go", "It's gone\nand more");
    go->add_flag("--fast,-f", flag, "Soon");
    go->add_option("--as", text)->type_name("one|two");
    go->add_option("RUN", text);
    go->add_option("FILE", list);
    go->add_subcommand("inner", "")->add_option("-o,--output", text)->type_name("FILE");
  }
  CLI::App app{"test", "assay"};
  std::string text;
  std::vector<std::string> list;
  bool flag = false;
};

TEST(Completion, TablesHoldCommandsOptionsAndWhatTheyTake) {
  const Tree tree;
  for (const char* shell : {"bash", "zsh"}) {
    const std::string script = CompletionScript(tree.app, shell);
    EXPECT_THAT(script, HasSubstr("'') commands='go'; options='--help -h --state'; arguments=''"));
    EXPECT_THAT(script, HasSubstr("'go') commands='inner'; options='--help -h --fast -f --as "
                                  "--state'; arguments='run file+' ;;"));
    EXPECT_THAT(script, HasSubstr("*' --state') kind='dir' ;;"));
    EXPECT_THAT(script, HasSubstr("'go --as') kind='words=one,two' ;;"));
    EXPECT_THAT(script, HasSubstr("'go inner --output') kind='file' ;;"));
    EXPECT_THAT(script, HasSubstr("'go inner -o') kind='file' ;;"));
    EXPECT_THAT(script, Not(HasSubstr("'go --fast') kind")));
  }
}

TEST(Completion, FishHasALineForEach) {
  const Tree tree;
  const std::string script = CompletionScript(tree.app, "fish");
  EXPECT_THAT(script, HasSubstr("-n '__fish_use_subcommand' -f -a go -d 'It\\'s gone'\n"));
  EXPECT_THAT(script,
              HasSubstr("complete -c assay -l state -x -a '(__fish_complete_directories)'"));
  EXPECT_THAT(script, HasSubstr("__fish_seen_subcommand_from go; and not "
                                "__fish_seen_subcommand_from inner' -l fast -s f -d 'Soon'\n"));
  EXPECT_THAT(script, HasSubstr("-l as -x -a 'one two'"));
}

TEST(Completion, KnowsNoOtherShell) {
  const Tree tree;
  EXPECT_EQ(CompletionScript(tree.app, "tcsh"), "");
  EXPECT_EQ(CompletionScript(tree.app, ""), "");
}

}  // namespace
}  // namespace assay::cli
