#include "cli/arguments.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include "cli/command_tree.h"
#include "cli/completion.h"
#include "cli/exit_codes.h"
#include "cli/printable.h"
#include "common/config/settings.h"
#include "common/status/status.h"
#include "common/text/did_you_mean.h"
#include "common/text/utf8.h"

namespace assay::cli {
namespace {

struct Named {
  const char* name;
  Command command;
};
constexpr Named kCommands[] = {
    {"plan", Command::kPlan},
    {"run", Command::kRun},
    {"watch", Command::kWatch},
    {"ls", Command::kLs},
    {"show", Command::kShow},
    {"results", Command::kResults},
    {"compare", Command::kCompare},
    {"agents", Command::kAgents},
    {"drain", Command::kDrain},
    {"undrain", Command::kUndrain},
    {"cancel", Command::kCancel},
    {"rerun", Command::kRerun},
    {"export", Command::kExport},
    {"merge", Command::kMerge},
    {"reproduce", Command::kReproduce},
    {"doctor", Command::kDoctor},
    {"certs", Command::kCerts},
    {"version", Command::kVersion},
    {"completion", Command::kCompletion},
};
constexpr const char* kLater[] = {"report", "import"};

class Parser {
 public:
  Parsed Parse(const std::vector<std::string>& words,
               const std::function<const char*(const char*)>& environment) {
    Parsed parsed;
    if (parsed.err = WordOfNoCommand(words); !parsed.err.empty()) {
      parsed.exit_code = kExitBadInput;
      return parsed;
    }
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    // CLI11 wants a subcommand; these two are questions of their own.
    const bool question = std::any_of(words.begin(), words.end(), [](const std::string& w) {
      return w == "--version" || w == "--print-config";
    });
    if (question) app_.require_subcommand(0, 1);
    try {
      app_.parse(reversed);
    } catch (const CLI::CallForHelp& help) {
      parsed.out = app_.help();
      for (const CLI::App* sub : app_.get_subcommands()) {
        parsed.out = sub->help("assay");
        for (const CLI::App* inner : sub->get_subcommands()) {
          parsed.out = inner->help("assay " + sub->get_name());
        }
      }
      return parsed;
    } catch (const CLI::ParseError& error) {
      parsed.err = Sentence(error, words);
      parsed.exit_code = kExitBadInput;
      return parsed;
    }
    if (parsed.err = UnusableValue(&app_, "assay"); !parsed.err.empty()) {
      parsed.exit_code = kExitBadInput;
      return parsed;
    }
    return Finish(environment);
  }

  const CLI::App& app() const { return app_; }

 private:
  // CLI11 would call an unknown command an unexpected argument and a global flag before it fine.
  std::string WordOfNoCommand(const std::vector<std::string>& words) const {
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (word == "--state" || word == "--coordinator" || word == "--config" ||
          word == "--tls-ca" || word == "--tls-cert" || word == "--tls-key") {
        ++i;
        continue;
      }
      if (word.empty() || word[0] == '-') continue;
      std::vector<std::string> known;
      for (const Named& named : kCommands) {
        if (word == named.name) return "";
        known.emplace_back(named.name);
      }
      if (std::find(std::begin(kLater), std::end(kLater), word) != std::end(kLater)) {
        return fmt::format("'{}' is not offered yet; assay --help lists what is", word);
      }
      return fmt::format("there is no command '{}'{}; assay --help lists them", Printable(word),
                         DidYouMean(word, std::span<const std::string>(known)));
    }
    return "";
  }

  std::string Sentence(const CLI::ParseError& error, const std::vector<std::string>& words) {
    const CLI::App* sub = &app_;
    std::string where = "assay";
    for (auto parsed = sub->get_subcommands(); !parsed.empty(); parsed = sub->get_subcommands()) {
      sub = parsed.back();
      where += " " + sub->get_name();
    }
    std::string what = Printable(error.what());
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && sub == &app_ &&
        what.find("subcommand") != std::string::npos) {
      return "say what to do, for example `assay run m.yaml`; assay --help lists the commands";
    }
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
      std::vector<std::string> known;
      for (const CLI::App* app : {sub, const_cast<const CLI::App*>(&app_)}) {
        for (const CLI::Option* option : app->get_options()) {
          for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
        }
      }
      for (const std::string& word : words) {
        if (word.size() < 3 || word.compare(0, 2, "--") != 0) continue;
        const std::string name = word.substr(0, word.find('='));
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        return fmt::format("{} has no flag {}{}; see {} --help", where, Printable(name),
                           DidYouMean(name, std::span<const std::string>(known)), where);
      }
    }
    std::replace(what.begin(), what.end(), '\n', ' ');
    while (!what.empty() && (what.back() == ' ' || what.back() == '.')) what.pop_back();
    return fmt::format("{}; see {} --help", what, where);
  }

  // An empty value is mostly a variable of a script that was not set: taken as "not given", the
  // whole matrix would be run for a slice, this machine checked for a node, cell 1 shown for
  // another.
  static std::string UnusableValue(const CLI::App* app, const std::string& where) {
    for (const CLI::Option* option : app->get_options()) {
      // A flag's value is not one that was typed.
      if (option->get_expected_max() == 0) continue;
      for (const std::string& value : option->results()) {
        if (!value.empty()) continue;
        return fmt::format("{} is empty: give a value or leave it out; see {} --help",
                           option->get_name(), where);
      }
    }
    for (const CLI::App* sub : app->get_subcommands()) {
      std::string sentence = UnusableValue(sub, where + " " + sub->get_name());
      if (!sentence.empty()) return sentence;
    }
    return "";
  }

  Parsed Finish(const std::function<const char*(const char*)>& environment) {
    Parsed parsed;
    if (raw_.version) {
      args_.command = Command::kVersion;
    }
    for (const CLI::App* sub : app_.get_subcommands()) {
      for (const Named& named : kCommands) {
        if (sub->get_name() == named.name) args_.command = named.command;
      }
    }
    const auto refuse = [&](std::string sentence) {
      parsed.err = std::move(sentence);
      parsed.exit_code = kExitBadInput;
      return parsed;
    };
    if (args_.command == Command::kCompletion && !args_.print_config) {
      parsed.out = CompletionScript(app_, raw_.shell);
      if (!parsed.out.empty()) return parsed;
      return refuse(fmt::format("SHELL is bash, zsh or fish, not '{}'", Printable(raw_.shell)));
    }
    // These go into messages, and those hold UTF-8; names of files may be any bytes.
    if (!IsUtf8(args_.run)) return refuse("there is no run of that name: RUN is not UTF-8");
    if (!IsUtf8(args_.node)) return refuse("there is no node of that name: NODE is not UTF-8");
    if (args_.command == Command::kPlan && !args_.print_config && !args_.schema &&
        args_.file.empty()) {
      return refuse("FILE is required; see assay plan --help");
    }
    if (args_.command == Command::kCerts && !args_.print_config) {
      if (std::string sentence = TakeCerts(args_.certs); !sentence.empty()) return refuse(sentence);
    }
    if (args_.command == Command::kCompare && !args_.print_config) {
      if (std::string sentence = TakeCompare(args_.compare); !sentence.empty()) {
        return refuse(sentence);
      }
    }
    if (std::string sentence = TakeWords(); !sentence.empty()) return refuse(sentence);
    if (std::string sentence = TakeRunFlags(environment); !sentence.empty())
      return refuse(sentence);
    if (args_.detach && args_.format != Format::kTable) {
      return refuse("--detach prints no results, so --format has no meaning with it");
    }
    parsed.arguments = args_;
    return parsed;
  }

  // What CLI11 hands over as text, since its own messages for these do not say what is allowed.
  std::string TakeWords() {
    const bool csv = tree_.MayBeCsv();
    const bool markdown = args_.command == Command::kCompare;
    if (raw_.format == "table") {
      args_.format = Format::kTable;
    } else if (raw_.format == "json") {
      args_.format = Format::kJson;
    } else if (raw_.format == "csv" && csv) {
      args_.format = Format::kCsv;
    } else if (raw_.format == "md" && markdown) {
      args_.format = Format::kMarkdown;
    } else {
      return fmt::format("--format takes {}, not '{}'",
                         markdown ? "table, md, csv or json"
                         : csv    ? "table, json or csv"
                                  : "table or json",
                         Printable(raw_.format));
    }
    if (!raw_.cell.empty()) {
      uint64_t cell = 0;
      const char* end = raw_.cell.data() + raw_.cell.size();
      const auto [rest, error] = std::from_chars(raw_.cell.data(), end, cell);
      if (error != std::errc() || rest != end || cell == 0) {
        return fmt::format("CELL is a number from 1, not '{}'", Printable(raw_.cell));
      }
      args_.cell = cell;
    }
    if (std::string sentence = TakeLabels(); !sentence.empty()) return sentence;
    return TakeCards();
  }

  std::string TakeRunFlags(const std::function<const char*(const char*)>& environment) {
    if (args_.resume && args_.force_new) {
      return "--resume goes on with a run and --new starts another; give one of them";
    }
    if (args_.resume && !args_.labels.empty()) {
      return "--label has no meaning with --resume: a run keeps the labels that it began with";
    }
    if (raw_.slice.empty())
      return raw_.slice_id.empty() ? "" : "--slice-id has no meaning without --slice";
    if (args_.force_new) return "a slice is started anew with another --slice-id, not with --new";
    if (const char* job = environment("SLURM_ARRAY_JOB_ID");
        raw_.slice_id.empty() && job != nullptr) {
      raw_.slice_id = job;
    }
    auto slice = ParseSlice(raw_.slice, raw_.slice_id);
    if (!slice.ok()) return "--slice: " + Message(slice.status());
    args_.slice = *std::move(slice);
    return "";
  }

  std::string TakeLabels() {
    auto labels = ParseLabels(raw_.labels);
    if (!labels.ok()) return "--label: " + Message(labels.status());
    args_.labels = *std::move(labels);
    return "";
  }

  std::string TakeCards() {
    for (size_t at = 0; at < raw_.cards.size();) {
      const size_t comma = std::min(raw_.cards.find(',', at), raw_.cards.size());
      std::string card = raw_.cards.substr(at, comma - at);
      card.erase(0, card.find_first_not_of(' '));
      card.erase(card.find_last_not_of(' ') + 1);
      if (!card.empty()) args_.cards.push_back(std::move(card));
      at = comma + 1;
    }
    if (tree_.plan_cards()->count() > 0 && args_.cards.empty()) return "--cards names no card";
    return "";
  }

  Arguments args_;
  RawArguments raw_;
  CommandTree tree_{args_, raw_};
  CLI::App& app_ = tree_.app();
};

// Fills in what the flags left open. `version` needs no file and must not fail over one.
absl::Status ResolveSettings(Arguments& args,
                             const std::function<const char*(const char*)>& environment,
                             bool with_file) {
  Settings settings(Program::kCli, environment);
  if (!args.state.value.empty()) settings.SetFlag("state", {args.state.value});
  if (!args.coordinator.value.empty()) settings.SetFlag("coordinator", {args.coordinator.value});
  if (!args.config.empty()) settings.SetFlag("config", {args.config});
  const TlsFiles tls = args.transport.tls;
  if (!tls.ca.empty()) settings.SetFlag("tls-ca", {tls.ca});
  if (!tls.certificate.empty()) settings.SetFlag("tls-cert", {tls.certificate});
  if (!tls.key.empty()) settings.SetFlag("tls-key", {tls.key});
  if (args.transport.insecure) settings.SetFlag("insecure", {"true"});
  if (args.quiet) settings.SetFlag("quiet", {"true"});
  if (args.no_color) settings.SetFlag("no-color", {"true"});
  ASSAY_RETURN_IF_ERROR(
      settings.Resolve(with_file && (args.command != Command::kVersion || args.print_config)));
  args.state = {settings.Text("state"), settings.Source("state")};
  args.coordinator = {settings.Text("coordinator"), settings.Source("coordinator")};
  args.transport = TransportOf(settings);
  args.quiet = settings.Flag("quiet");
  args.no_color = settings.Flag("no-color");
  args.config_file = settings.file();
  args.printed_config = settings.Printed();
  return absl::OkStatus();
}

}  // namespace

Parsed ParseArguments(const std::vector<std::string>& words,
                      const std::function<const char*(const char*)>& environment, bool with_file) {
  Parser parser;
  for (const std::string& word : words) {
    if (word.find('\0') != std::string::npos) {
      return {std::nullopt, kExitBadInput, "", "a word of the command line holds a NUL byte"};
    }
  }
  if (words.empty()) {
    return {std::nullopt, kExitBadInput, "", parser.app().help()};
  }
  Parsed parsed = parser.Parse(words, environment);
  if (parsed.arguments) {
    Arguments& args = *parsed.arguments;
    if (const absl::Status status = ResolveSettings(args, environment, with_file); !status.ok()) {
      return {std::nullopt, kExitBadInput, "", Message(status)};
    }
    // A plan asks a fleet only when told so on its own command line: it needs no server.
    args.fleet = args.coordinator.source == "--coordinator";
    const char* no_color = environment("NO_COLOR");
    args.no_color = args.no_color || (no_color != nullptr && *no_color != '\0');
  }
  return parsed;
}

}  // namespace assay::cli
