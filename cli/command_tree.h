// CommandTree: every command, option and help text of `assay`, over one Arguments. What was parsed
// is checked by arguments.cc; completion.cc makes its scripts of the same tree.
//
// Owner: the parser of one command line. CLI11 keeps references into what it is given, so both
// outlive this. Thread rule: one owner.
#ifndef ASSAY_CLI_COMMAND_TREE_H_
#define ASSAY_CLI_COMMAND_TREE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace assay::cli {

// What CLI11 hands over as text, since its own messages for these do not say what is allowed.
struct RawArguments {
  bool version = false;
  std::string format = "table";
  std::string cell;
  std::string cards;
  std::vector<std::string> labels;
  std::string slice;
  std::string slice_id;
  std::string shell;
};

class CommandTree {
 public:
  CommandTree(Arguments& args, RawArguments& raw);
  CommandTree(const CommandTree&) = delete;
  CommandTree& operator=(const CommandTree&) = delete;

  CLI::App& app() { return app_; }
  const CLI::Option* plan_cards() const { return plan_cards_; }
  // The command that was parsed prints CSV too.
  bool MayBeCsv() const;

 private:
  CLI::App* Add(const char* name, const char* doc, const std::string& footer);
  void AddFormat(CLI::App* sub, bool csv);
  void AddLabels(CLI::App* sub, const char* doc);
  void AddRunWord(CLI::App* sub);
  void AddMatrixCommands();
  void AddRunCommands();
  void AddNodeCommands();
  void AddFileCommands();
  void AddCertsCommands();
  void AddCompletion();

  CLI::App app_{"Assay measures what GPU cards are worth for training.", "assay"};
  Arguments& args_;
  RawArguments& raw_;
  const CLI::Option* plan_cards_ = nullptr;
  std::vector<const CLI::App*> without_csv_;
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_COMMAND_TREE_H_
