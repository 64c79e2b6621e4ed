#include "cli/command_tree.h"

#include <algorithm>

#include "cli/help_texts.h"

namespace assay::cli {
namespace {

constexpr char kRunWord[] = "Run: its id, the unique start of an id, or `last`";

}  // namespace

bool CommandTree::MayBeCsv() const {
  return std::none_of(without_csv_.begin(), without_csv_.end(),
                      [](const CLI::App* sub) { return sub->parsed(); });
}

CommandTree::CommandTree(Arguments& args, RawArguments& raw) : args_(args), raw_(raw) {
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
  app_.add_flag("--version", raw_.version, "Same as `assay version`");
  AddMatrixCommands();
  AddRunCommands();
  AddFileCommands();
  AddCertsCommands();
  AddCompletion();
  for (CLI::App* sub : app_.get_subcommands({})) {
    sub->fallthrough();
    for (CLI::App* inner : sub->get_subcommands({})) inner->fallthrough();
  }
}

CLI::App* CommandTree::Add(const char* name, const char* doc, const std::string& footer) {
  CLI::App* sub = app_.add_subcommand(name, doc);
  sub->footer(footer +
              "\n\nAlso: --state DIR, --coordinator ADDR, --quiet, --no-color, --print-config"
              " (assay --help)");
  return sub;
}

void CommandTree::AddFormat(CLI::App* sub, bool csv) {
  sub->add_option("--format", raw_.format, "How to print the results")
      ->type_name(csv ? "table|json|csv" : "table|json");
  if (!csv) without_csv_.push_back(sub);
}

// One value a flag: a list would take the file that follows it too.
void CommandTree::AddLabels(CLI::App* sub, const char* doc) {
  sub->add_option("--label", raw_.labels, doc)->type_name("NAME=VALUE")->allow_extra_args(false);
}

void CommandTree::AddRunWord(CLI::App* sub) {
  sub->add_option("RUN", args_.run, kRunWord)->required()->type_name("");
}

void CommandTree::AddMatrixCommands() {
  CLI::App* plan = Add("plan", "Show what a matrix would measure, without running it", kPlanFooter);
  plan->add_option("FILE", args_.file, "Matrix file (- for standard input)")->type_name("");
  plan_cards_ =
      plan->add_option("--cards", raw_.cards, "Cards to plan for, by name, separated by commas")
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
  run->add_flag("--new", args_.force_new, "Start a new run even if the same matrix is unfinished");
  run->add_flag("--resume", args_.resume,
                "Go on with the newest run of this matrix that is unfinished or partly\n"
                "failed; finished cells are not repeated");
  run->add_option("--slice", raw_.slice, "Run part I of N: the specs whose index modulo N is I - 1")
      ->type_name("I/N");
  run->add_option("--slice-id", raw_.slice_id,
                  "Tells one run of all slices from the next, the same for each of them\n"
                  "(default: SLURM_ARRAY_JOB_ID, where it is set)")
      ->type_name("WORD");
  AddLabels(run,
            "Write NAME=VALUE on the run, to find it with `assay ls --label`; may be repeated");
  AddFormat(run, true);
}

void CommandTree::AddRunCommands() {
  AddRunWord(Add("watch", "Follow a run to its end and print its table",
                 "Ctrl-C stops watching; the run goes on.\n\nExamples:\n  assay watch last\n"
                 "  assay watch 01JB  any unique start of an id"));
  AddFormat(app_.get_subcommand("watch"), true);

  CLI::App* ls = Add("ls", "List the runs, newest first",
                     "Examples:\n  assay ls\n  assay ls --label team=cnn --label nightly=yes\n"
                     "  assay ls --format json | jq -r '.runs[0].id'");
  AddLabels(ls, "Only runs with this label; may be repeated, then all of them");
  AddFormat(ls, false);

  CLI::App* show = Add("show", "Show a run, or one cell with its attempts, record and log",
                       "Without a cell: the run's counts and every cell that is not ok, with why.\n"
                       "With a cell: its result with units, each attempt, why it failed and the "
                       "end of its log.\n\nExamples:\n  assay show last\n  assay show last 7");
  AddRunWord(show);
  show->add_option("CELL", raw_.cell, "Number of a cell, from 1")->type_name("");

  CLI::App* results = Add("results", "Print the results of a run",
                          "json and csv have one row for each cell with every field of "
                          "docs/results.md; the table groups repeats.\n\nExamples:\n"
                          "  assay results last\n  assay results last --format csv > table.csv");
  AddRunWord(results);
  AddFormat(results, true);

  CLI::App* compare =
      Add("compare", "Say which card is faster, by how much and how sure", kCompareFooter);
  AddCompareOptions(*compare, args_.compare);
  compare->add_option("--format", raw_.format, "How to print the comparison")
      ->type_name("table|md|csv|json");

  AddNodeCommands();

  AddRunWord(Add("cancel", "Cancel a run and wait until its processes are gone",
                 "What was measured stays. Ctrl-C stops waiting; the cancel stands.\n\n"
                 "Example:\n  assay cancel last"));

  CLI::App* rerun = Add("rerun", "Try the failed cells of a run again",
                        "Cells that ended as fail, hung, timeout, lost or cancelled, and those "
                        "whose figure is invalid, get a new attempt; what is ok "
                        "stays.\n\nExample:\n  assay rerun last --failed");
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
  reproduce->add_option("CELL", raw_.cell, "Number of a cell, from 1")->required()->type_name("");
  reproduce->add_option("-o,--output", args_.output, "Write the cell file there")
      ->type_name("FILE");
}

void CommandTree::AddNodeCommands() {
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
  CLI::App* doctor = Add("doctor", "Check this machine, or a node of the fleet", kDoctorFooter);
  doctor->add_option("--node", args_.node, "A node of the fleet, asked through its agent")
      ->type_name("NODE");
  doctor
      ->add_option("--runner", args_.runner,
                   "A runner program or the manifest of a stack: does it keep the protocol?")
      ->type_name("PROGRAM")
      ->excludes("--node");
  doctor
      ->add_option("--cell-seconds", args_.cell_seconds,
                   "How long one small cell of the runner may take (default 120)")
      ->type_name("N")
      ->check(CLI::Range(1, 3600))
      ->needs("--runner");
  AddFormat(doctor, false);
}

void CommandTree::AddFileCommands() {
  CLI::App* exported = Add("export", "Write a run with all its attempts to a file",
                           "The file appears complete or not at all.\n\n"
                           "Example:\n  assay export last -o night.assay");
  AddRunWord(exported);
  exported->add_option("-o,--output", args_.output, "File to write; - is standard output")
      ->required()
      ->type_name("FILE");

  CLI::App* merge = Add("merge", "Take the runs of exported files into this state directory",
                        "Merging a file twice changes nothing.\n\n"
                        "Example:\n  assay merge night.assay other-site.assay");
  merge->add_option("FILE", args_.files, "Files written by `assay export`; - is standard input")
      ->required()
      ->type_name("");

  AddFormat(Add("version", "Print the version of the program and of its contracts",
                "Example:\n  assay version --format json"),
            false);
}

void CommandTree::AddCertsCommands() {
  CLI::App* certs = Add("certs", "Make the certificates of a fleet", kCertsFooter);
  AddFormat(AddCertsOptions(*certs, args_.certs), false);
}

void CommandTree::AddCompletion() {
  CLI::App* completion =
      Add("completion", "Print a script that completes commands in a shell", kCompletionFooter);
  completion->add_option("SHELL", raw_.shell, "bash, zsh or fish")
      ->required()
      ->type_name("bash|zsh|fish");
}

}  // namespace assay::cli
