// What `assay compare` takes, checked.
//
// Thread rule: one owner.
#ifndef ASSAY_CLI_COMPARE_ARGUMENTS_H_
#define ASSAY_CLI_COMPARE_ARGUMENTS_H_

#include <string>
#include <vector>

#include "common/results/compare/compare.h"

namespace CLI {
class App;
}

namespace assay::cli {

struct CompareArguments {
  compare::Options options;  // without prices
  std::vector<std::string> runs;
  std::vector<std::string> published;  // --published FILE
  std::string prices;                  // --prices FILE; "" for none
  bool launch_prices = false;          // those of the catalogue

  // As typed.
  std::string by = "card", score = "equal", stack = "common";
  std::vector<std::string> where, across;
};

extern const char kCompareFooter[];

// `to` is written while words are parsed.
void AddCompareOptions(CLI::App& app, CompareArguments& to);

// What CLI11 does not check. One sentence, or empty.
std::string TakeCompare(CompareArguments& to);

}  // namespace assay::cli

#endif  // ASSAY_CLI_COMPARE_ARGUMENTS_H_
