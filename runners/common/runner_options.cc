#include "runners/common/runner_options.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "runners/common/bad_input.h"

namespace assay {
namespace {

std::optional<int> ToDescriptor(const std::string& digits) {
  int fd = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), fd);
  if (error != std::errc() || end != digits.data() + digits.size() || fd < 0) return std::nullopt;
  return fd;
}

void ParseLifeline(const std::string& text, RunnerOptions& options) {
  const size_t comma = text.find(',');
  const std::string wrong = "--lifeline '" + text + "' is not of the form fd:N,SECONDS";
  if (comma == std::string::npos) throw BadInput(wrong);
  options.lifeline_fd = DescriptorOf(text.substr(0, comma));
  if (options.lifeline_fd < 0) throw BadInput(wrong);
  const char* begin = text.data() + comma + 1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, options.lifeline_seconds);
  if (error != std::errc() || stop != end || !std::isfinite(options.lifeline_seconds) ||
      options.lifeline_seconds <= 0 || options.lifeline_seconds > 86400) {
    throw BadInput(wrong + ", with SECONDS above 0 and at most 86400");
  }
}

// Splits "--name=value" so that the loop sees two arguments.
std::vector<std::string> Arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (argument.starts_with("--") && equals != std::string::npos) {
      arguments.push_back(argument.substr(0, equals));
      arguments.push_back(argument.substr(equals + 1));
    } else {
      arguments.push_back(argument);
    }
  }
  return arguments;
}

}  // namespace

int DescriptorOf(const std::string& text) {
  if (!text.starts_with("fd:")) return -1;
  const auto fd = ToDescriptor(text.substr(3));
  if (!fd) throw BadInput("'" + text + "' is not a descriptor: write fd:N with N a number from 0");
  return *fd;
}

RunnerOptions ParseRunnerOptions(int argc, const char* const* argv) {
  using Action = RunnerOptions::Action;
  RunnerOptions options;
  std::optional<Action> action;
  const auto set_action = [&](Action wanted) {
    if (action && *action != wanted) {
      throw BadInput("give one of --cell, --stack-info, --list, --describe and --version, not two");
    }
    action = wanted;
  };
  const std::vector<std::string> arguments = Arguments(argc, argv);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 >= arguments.size() || arguments[i + 1].empty()) {
        throw BadInput(name + " needs a value (see --help)");
      }
      return arguments[++i];
    };
    if (name == "--help" || name == "-h") {
      options.action = Action::kHelp;
      return options;
    } else if (name == "--cell") {
      set_action(Action::kCell);
      options.cell = value();
    } else if (name == "--records") {
      options.records = value();
      DescriptorOf(options.records);
    } else if (name == "--lifeline") {
      ParseLifeline(value(), options);
    } else if (name == "--stack-info") {
      set_action(Action::kStackInfo);
    } else if (name == "--list") {
      set_action(Action::kList);
    } else if (name == "--version") {
      set_action(Action::kVersion);
    } else if (name == "--describe") {
      set_action(Action::kDescribe);
      options.model = value();
    } else {
      throw BadInput("unknown argument '" + name + "' (see --help)");
    }
  }
  if (!action) {
    throw BadInput("nothing to do: give --cell FILE, --stack-info, --list or --describe MODEL");
  }
  options.action = *action;
  return options;
}

std::string RunnerUsage(const std::string& program) {
  return "Usage: " + program +
         " --cell FILE|- [--records fd:N|FILE|-] [--lifeline fd:N,SECONDS]\n"
         "       " +
         program +
         " --stack-info | --list | --describe MODEL | --version\n\n"
         "Runs one benchmark cell, given as a JSON cell file, and writes its records, one JSON\n"
         "object a line, to standard output or where --records says.\n\n"
         "  --cell FILE|-            the cell file; - reads standard input\n"
         "  --records fd:N|FILE|-    where records go (default -, standard output)\n"
         "  --lifeline fd:N,SECONDS  leave with 143 at end of file or silence on descriptor N\n"
         "  --stack-info             what this build can run, as JSON\n"
         "  --list                   its models, one a line\n"
         "  --describe MODEL         a model's parameters and FLOPs a sample, as JSON\n\n"
         "Exit codes: 0 ok, 1 fail, 2 bad input, 3 out of memory, 4 unsupported, 143 lifeline.\n";
}

}  // namespace assay
