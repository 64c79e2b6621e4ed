// RunnerOptions: the command line that every runner takes (docs/protocol.md).
//
//   PROGRAM --cell FILE|- [--records fd:N|FILE|-] [--lifeline fd:N,SECONDS]
//   PROGRAM --stack-info | --list | --describe MODEL | --version | --help
//
// Both `--cell FILE` and `--cell=FILE` are accepted. Pure: opens nothing.
#ifndef ASSAY_RUNNERS_COMMON_RUNNER_OPTIONS_H_
#define ASSAY_RUNNERS_COMMON_RUNNER_OPTIONS_H_

#include <string>

namespace assay {

struct RunnerOptions {
  enum class Action { kCell, kStackInfo, kList, kDescribe, kVersion, kHelp };
  Action action = Action::kCell;
  std::string cell;           // path, or "-" for standard input
  std::string records = "-";  // "fd:N", a path, or "-" for standard output
  std::string model;          // of --describe
  int lifeline_fd = -1;       // -1: none, as when run by hand
  double lifeline_seconds = 0;
};

// Throws BadInput with one sentence that names the argument.
RunnerOptions ParseRunnerOptions(int argc, const char* const* argv);

// The text of --help, ending in a line break.
std::string RunnerUsage(const std::string& program);

// N of "fd:N", or -1 where `text` is not of that form. Throws BadInput where it begins with "fd:"
// and goes on as no descriptor number can.
int DescriptorOf(const std::string& text);

}  // namespace assay

#endif  // ASSAY_RUNNERS_COMMON_RUNNER_OPTIONS_H_
