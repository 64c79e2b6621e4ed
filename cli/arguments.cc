#include "cli/arguments.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include "cli/exit_codes.h"
#include "cli/help_texts.h"
#include "cli/printable.h"
#include "common/config/settings.h"
#include "common/status/status.h"
#include "common/text/did_you_mean.h"

namespace assay::cli {
namespace {

constexpr char kRunWord[] = "Run: its id, the unique start of an id, or `last`";

struct Named {
  const char* name;
  Command command;
};
constexpr Named kCommands[] = {
    {"plan", Command::kPlan},       {"run", Command::kRun},
    {"watch", Command::kWatch},     {"ls", Command::kLs},
    {"show", Command::kShow},       {"results", Command::kResults},
    {"agents", Command::kAgents},   {"drain", Command::kDrain},
    {"undrain", Command::kUndrain}, {"cancel", Command::kCancel},
    {"rerun", Command::kRerun},     {"export", Command::kExport},
    {"merge", Command::kMerge},     {"reproduce", Command::kReproduce},
    {"certs", Command::kCerts},     {"version", Command::kVersion},
};
constexpr const char* kLater[] = {"compare", "report", "import", "doctor"};

// The tree of options over one Arguments. CLI11 keeps references into it.
class Parser {
 public:
  Parser() {
    app_.require_subcommand(1, 1);
    app_.fallthrough();
    app_.footer(kGlobalFooter);
    app_.add_option("--state", args_.state.value,
                    "State directory (ASSAY_STATE; default ~/.local/state/assay)")
        ->type_name("DIR");
    app_.add_option("--coordinator", args_.coordinator.value,
                    "Coordinator to ask (ASSAY_COORDINATOR), HOST:PORT or unix:/PATH;\n"
                    "default: the one of the state directory, started where needed")
        ->type_name("ADDR");
    app_.add_option("--tls-ca", args_.transport.tls.ca,
                    "Certificate of the authority that signed the coordinator's (ASSAY_TLS_CA)")
        ->type_name("FILE");
    app_.add_option("--tls-cert", args_.transport.tls.certificate,
                    "Your certificate, by `assay certs user` (ASSAY_TLS_CERT)")
        ->type_name("FILE");
    app_.add_option("--tls-key", args_.transport.tls.key, "Its key (ASSAY_TLS_KEY)")
        ->type_name("FILE");
    app_.add_flag("--insecure", args_.transport.insecure,
                  "Plain text to another machine: all on the way can read and change it");
    app_.add_flag("--quiet,-q", args_.quiet, "No progress and no notes, only results and errors");
    app_.add_flag("--no-color", args_.no_color, "No colour (also with NO_COLOR set)");
    app_.add_option("--config", args_.config,
                    "Configuration file (ASSAY_CONFIG; default config.yaml of the state directory)")
        ->type_name("FILE");
    app_.add_flag("--print-config", args_.print_config,
                  "Show each setting, where it came from, and leave");
    app_.add_flag("--version", version_, "Same as `assay version`");
    AddMatrixCommands();
    AddRunCommands();
    AddFileCommands();
    AddCertsCommands();
    for (CLI::App* sub : app_.get_subcommands({})) {
      sub->fallthrough();
      for (CLI::App* inner : sub->get_subcommands({})) inner->fallthrough();
    }
  }

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
    return Finish(environment);
  }

  const CLI::App& app() const { return app_; }

 private:
  CLI::App* Add(const char* name, const char* doc, const std::string& footer) {
    CLI::App* sub = app_.add_subcommand(name, doc);
    sub->footer(footer +
                "\n\nAlso: --state DIR, --coordinator ADDR, --quiet, --no-color, --print-config"
                " (assay --help)");
    return sub;
  }

  void AddFormat(CLI::App* sub, bool csv) {
    sub->add_option("--format", format_, "How to print the results")
        ->type_name(csv ? "table|json|csv" : "table|json");
    if (!csv) without_csv_.push_back(sub);
  }

  // One value a flag: a list would take the file that follows it too.
  void AddLabels(CLI::App* sub, const char* doc) {
    sub->add_option("--label", labels_, doc)->type_name("NAME=VALUE")->allow_extra_args(false);
  }

  void AddRunWord(CLI::App* sub) {
    sub->add_option("RUN", args_.run, kRunWord)->required()->type_name("");
  }

  void AddMatrixCommands() {
    CLI::App* plan =
        Add("plan", "Show what a matrix would measure, without running it", kPlanFooter);
    plan->add_option("FILE", args_.file, "Matrix file (- for standard input)")->type_name("");
    plan_cards_ =
        plan->add_option("--cards", cards_, "Cards to plan for, by name, separated by commas")
            ->type_name("LIST");
    plan->add_flag("--schema", args_.schema, "Print the JSON Schema of the matrix file");
    plan->add_flag("--yes,-y", args_.yes, "Agree to more than 10,000 cells");
    AddFormat(plan, true);

    CLI::App* run = Add("run", "Run a matrix and print its table", kRunFooter);
    run->add_option("FILE", args_.file, "Matrix file (- for standard input)")
        ->required()
        ->type_name("");
    run->add_flag("--detach,-d", args_.detach, "Leave as soon as the run is accepted");
    run->add_flag("--yes,-y", args_.yes, "Agree to more than 10,000 cells");
    run->add_flag("--new", args_.force_new,
                  "Start a new run even if the same matrix is unfinished");
    run->add_flag("--resume", args_.resume,
                  "Go on with the newest run of this matrix that is unfinished or partly\n"
                  "failed; finished cells are not repeated");
    run->add_option("--slice", slice_, "Run part I of N: the specs whose index modulo N is I - 1")
        ->type_name("I/N");
    run->add_option("--slice-id", slice_id_,
                    "Tells one run of all slices from the next, the same for each of them\n"
                    "(default: SLURM_ARRAY_JOB_ID, where it is set)")
        ->type_name("WORD");
    AddLabels(run,
              "Write NAME=VALUE on the run, to find it with `assay ls --label`; may be repeated");
    AddFormat(run, true);
  }

  void AddRunCommands() {
    AddRunWord(Add("watch", "Follow a run to its end and print its table",
                   "Ctrl-C stops watching; the run goes on.\n\nExamples:\n  assay watch last\n"
                   "  assay watch 01JB  any unique start of an id"));
    AddFormat(app_.get_subcommand("watch"), true);

    CLI::App* ls = Add("ls", "List the runs, newest first",
                       "Examples:\n  assay ls\n  assay ls --label team=cnn --label nightly=yes\n"
                       "  assay ls --format json | jq -r '.runs[0].id'");
    AddLabels(ls, "Only runs with this label; may be repeated, then all of them");
    AddFormat(ls, false);

    CLI::App* show =
        Add("show", "Show a run, or one cell with its attempts, record and log",
            "Without a cell: the run's counts and every cell that is not ok, with why.\n"
            "With a cell: its result with units, each attempt, why it failed and the "
            "end of its log.\n\nExamples:\n  assay show last\n  assay show last 7");
    AddRunWord(show);
    show->add_option("CELL", cell_, "Number of a cell, from 1")->type_name("");

    CLI::App* results = Add("results", "Print the results of a run",
                            "json and csv have one row for each cell with every field of "
                            "docs/results.md; the table groups repeats.\n\nExamples:\n"
                            "  assay results last\n  assay results last --format csv > table.csv");
    AddRunWord(results);
    AddFormat(results, true);

    AddNodeCommands();

    AddRunWord(Add("cancel", "Cancel a run and wait until its processes are gone",
                   "What was measured stays. Ctrl-C stops waiting; the cancel stands.\n\n"
                   "Example:\n  assay cancel last"));

    CLI::App* rerun = Add("rerun", "Try the failed cells of a run again",
                          "Cells that ended as fail, hung, timeout, lost or cancelled get a new "
                          "attempt; what is ok stays.\n\nExample:\n  assay rerun last --failed");
    AddRunWord(rerun);
    rerun->add_flag("--failed", args_.failed, "Only what failed (the only choice so far)")
        ->required();
    rerun->add_flag("--detach,-d", args_.detach, "Leave as soon as the run is accepted");
    AddFormat(rerun, true);

    CLI::App* reproduce = Add(
        "reproduce", "Print the command that runs one cell by hand",
        "Prints a shell script: the environment, the runner and the exact cell it was given. With "
        "-o the cell is written to that file.\n\nExamples:\n  assay reproduce last 7\n"
        "  assay reproduce last 7 | sh\n  assay reproduce last 7 -o cell.json");
    AddRunWord(reproduce);
    reproduce->add_option("CELL", cell_, "Number of a cell, from 1")->required()->type_name("");
    reproduce->add_option("-o,--output", args_.output, "Write the cell file there")
        ->type_name("FILE");
  }

  void AddNodeCommands() {
    CLI::App* agents =
        Add("agents", "List the nodes with their cards and stacks",
            "--watch goes on until Ctrl-C: on a terminal it redraws the table, elsewhere it prints "
            "a line\nfor each change, and with --format json an object for each node that "
            "changed.\n\nExamples:\n  assay agents\n  assay agents --watch\n"
            "  assay agents --format json");
    agents->add_flag("--watch", args_.watch, "Go on, and show what changes");
    AddFormat(agents, false);
    CLI::App* drain = Add(
        "drain", "Offer a node no more cells, for maintenance",
        "Cells that run there go on to their end; --wait waits for it, and Ctrl-C then stops only "
        "the\nwaiting. The drain is stored: it stands until `assay undrain`, whatever is restarted "
        "meanwhile.\n`assay agents` shows `draining` while something runs there, then "
        "`drained`.\n\nExamples:\n  assay drain node7 --wait && ssh node7 sudo reboot\n"
        "  assay undrain node7");
    drain->add_option("NODE", args_.node, "Node, as `assay agents` names it")
        ->required()
        ->type_name("");
    drain->add_flag("--wait", args_.wait, "Wait until nothing runs there");
    AddFormat(drain, false);
    CLI::App* undrain = Add("undrain", "Offer cells to a drained node again",
                            "A node that was not drained stays as it is.\n\n"
                            "Example:\n  assay undrain node7");
    undrain->add_option("NODE", args_.node, "Node, as `assay agents` names it")
        ->required()
        ->type_name("");
    AddFormat(undrain, false);
  }

  void AddFileCommands() {
    CLI::App* exported = Add("export", "Write a run with all its attempts to a file",
                             "The file appears complete or not at all.\n\n"
                             "Example:\n  assay export last -o night.assay");
    AddRunWord(exported);
    exported->add_option("-o,--output", args_.output, "File to write")
        ->required()
        ->type_name("FILE");

    CLI::App* merge = Add("merge", "Take the runs of exported files into this state directory",
                          "Merging a file twice changes nothing.\n\n"
                          "Example:\n  assay merge night.assay other-site.assay");
    merge->add_option("FILE", args_.files, "Files written by `assay export`")
        ->required()
        ->type_name("");

    AddFormat(Add("version", "Print the version of the program and of its contracts",
                  "Example:\n  assay version --format json"),
              false);
  }

  void AddCertsCommands() {
    CLI::App* certs = Add("certs", "Make the certificates of a fleet", kCertsFooter);
    AddFormat(AddCertsOptions(*certs, args_.certs), false);
  }

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

  Parsed Finish(const std::function<const char*(const char*)>& environment) {
    Parsed parsed;
    if (version_) {
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
    if (args_.command == Command::kPlan && !args_.print_config && !args_.schema &&
        args_.file.empty()) {
      return refuse("FILE is required; see assay plan --help");
    }
    if (args_.command == Command::kCerts && !args_.print_config) {
      if (std::string sentence = TakeCerts(args_.certs); !sentence.empty()) return refuse(sentence);
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
    const bool csv = std::none_of(without_csv_.begin(), without_csv_.end(),
                                  [](const CLI::App* sub) { return sub->parsed(); });
    if (format_ == "table") {
      args_.format = Format::kTable;
    } else if (format_ == "json") {
      args_.format = Format::kJson;
    } else if (format_ == "csv" && csv) {
      args_.format = Format::kCsv;
    } else {
      return fmt::format("--format takes {}, not '{}'",
                         csv ? "table, json or csv" : "table or json", Printable(format_));
    }
    if (!cell_.empty()) {
      uint64_t cell = 0;
      const char* end = cell_.data() + cell_.size();
      const auto [rest, error] = std::from_chars(cell_.data(), end, cell);
      if (error != std::errc() || rest != end || cell == 0) {
        return fmt::format("CELL is a number from 1, not '{}'", Printable(cell_));
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
    if (slice_.empty()) return slice_id_.empty() ? "" : "--slice-id has no meaning without --slice";
    if (args_.force_new) return "a slice is started anew with another --slice-id, not with --new";
    if (const char* job = environment("SLURM_ARRAY_JOB_ID"); slice_id_.empty() && job != nullptr) {
      slice_id_ = job;
    }
    auto slice = ParseSlice(slice_, slice_id_);
    if (!slice.ok()) return "--slice: " + Message(slice.status());
    args_.slice = *std::move(slice);
    return "";
  }

  std::string TakeLabels() {
    auto labels = ParseLabels(labels_);
    if (!labels.ok()) return "--label: " + Message(labels.status());
    args_.labels = *std::move(labels);
    return "";
  }

  std::string TakeCards() {
    for (size_t at = 0; at < cards_.size();) {
      const size_t comma = std::min(cards_.find(',', at), cards_.size());
      std::string card = cards_.substr(at, comma - at);
      card.erase(0, card.find_first_not_of(' '));
      card.erase(card.find_last_not_of(' ') + 1);
      if (!card.empty()) args_.cards.push_back(std::move(card));
      at = comma + 1;
    }
    if (plan_cards_->count() > 0 && args_.cards.empty()) return "--cards names no card";
    return "";
  }

  CLI::App app_{"Assay measures what GPU cards are worth for training.", "assay"};
  Arguments args_;
  bool version_ = false;
  std::string format_ = "table";
  std::string cell_;
  std::string cards_;
  std::vector<std::string> labels_;
  std::string slice_;
  std::string slice_id_;
  const CLI::Option* plan_cards_ = nullptr;
  std::vector<const CLI::App*> without_csv_;
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
    if (word.find('\0') != std::string::npos) return {std::nullopt, kExitBadInput, "", "NUL"};
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
