// Arguments: the command line of `assay`, checked.
//
// A flag beats the environment, which beats the file, which beats the default (common/config);
// --print-config shows which one won. Thread rule: one owner.
#ifndef ASSAY_CLI_ARGUMENTS_H_
#define ASSAY_CLI_ARGUMENTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/certs_arguments.h"
#include "cli/compare_arguments.h"
#include "common/labels/labels.h"
#include "common/matrix/slice.h"
#include "common/net/transport.h"

namespace assay::cli {

enum class Command {
  kPlan,
  kRun,
  kWatch,
  kLs,
  kShow,
  kResults,
  kCompare,
  kAgents,
  kDrain,
  kUndrain,
  kCancel,
  kRerun,
  kExport,
  kMerge,
  kReproduce,
  kDoctor,
  kCerts,
  kCompletion,
  kVersion,
};

enum class Format { kTable, kJson, kCsv, kMarkdown };

struct Setting {
  std::string value;
  std::string source;  // "--state", "ASSAY_STATE", "FILE:3", "default"
};

struct Arguments {
  Command command = Command::kVersion;
  Setting state;        // empty value: ResolveStateDir's default
  Setting coordinator;  // empty value: local mode
  Transport transport;  // to a coordinator that is not the state directory's
  bool quiet = false;
  bool no_color = false;
  bool print_config = false;
  std::string config;       // --config
  std::string config_file;  // the file that was read; empty: none
  std::string printed_config;

  Format format = Format::kTable;
  std::string file;                // plan, run: the matrix
  std::string run;                 // id, unique prefix or "last"
  std::string node;                // drain, undrain, doctor --node; there empty: here
  std::string runner;              // doctor --runner; empty: the machine
  int64_t cell_seconds = 120;      // doctor --cell-seconds
  std::optional<uint64_t> cell;    // show, reproduce
  std::vector<std::string> files;  // merge
  std::string output;              // export, reproduce: -o
  std::vector<std::string> cards;  // plan --cards
  bool fleet = false;              // plan --coordinator was given (or ASSAY_COORDINATOR)
  bool schema = false;             // plan --schema
  bool detach = false;             // run, rerun
  bool watch = false;              // agents --watch
  bool wait = false;               // drain --wait
  bool yes = false;                // plan, run
  bool force_new = false;          // run --new
  bool failed = false;             // rerun --failed
  Labels labels;                   // run, ls --label
  Slice slice;                     // run --slice, --slice-id
  bool resume = false;             // run --resume
  CertsArguments certs;
  CompareArguments compare;

  bool LocalMode() const { return coordinator.value.empty(); }
};

struct Parsed {
  std::optional<Arguments> arguments;  // empty: print the texts and leave with `exit_code`
  int exit_code = 0;
  std::string out;  // help
  std::string err;  // one sentence
};

// `words` without the program's name. `environment` gives a variable or nullptr. No file is read
// unless `with_file`.
Parsed ParseArguments(const std::vector<std::string>& words,
                      const std::function<const char*(const char*)>& environment,
                      bool with_file = false);

}  // namespace assay::cli

#endif  // ASSAY_CLI_ARGUMENTS_H_
