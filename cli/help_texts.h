// Longer texts of --help. What they say is part of the interface; arguments.cc puts them in place.
#ifndef ASSAY_CLI_HELP_TEXTS_H_
#define ASSAY_CLI_HELP_TEXTS_H_

namespace assay::cli {

inline constexpr char kGlobalFooter[] = R"(Exit codes:
  0    all went well; a cell that did not fit into memory or is unsupported is no failure
  1    a cell failed, hung, timed out, was lost or is invalid, and others are valid
  2    bad input: a matrix file, a flag, an unknown run or cell, a file that cannot be written
  3    nothing could be run: no coordinator, no agent, or no cell came to a valid figure
  130  cancelled, here with Ctrl-C or by someone else
  143  cancelled here by SIGTERM

Examples:
  assay plan m.yaml            what would be measured, without a server or a GPU
  assay run m.yaml             measure it on this machine and print the table
  assay results last --format csv > table.csv
  assay compare                which card is faster, by how much and how sure
  assay show last 7            why cell 7 came out as it did

`assay COMMAND --help` says more about each command.)";

inline constexpr char kRunFooter[] =
    R"(The first line on standard output is `run ID` (on standard error with --format json or csv, so that
standard output holds the document alone). Progress goes to standard error: a block that is redrawn
on a terminal, else a line for each ended cell and at least one every 10 s. Errors come last.
With --quiet nothing is said but that a run has been waiting for 45 s, and for what.

Run the same command again after an interruption: an unfinished run of the same matrix goes on, no
finished cell is measured twice. --new starts afresh, --resume also opens the failed and cancelled
cells of a run that has ended, and refuses where there is nothing to go on with.

--slice I/N runs a part of the matrix, for N jobs that share no network: each with a state directory
of its own, then `assay export last -o FILE` and one `assay merge FILE...`, which makes one run of
them. Keys are those of the whole matrix. In a Slurm array:
  assay run m.yaml --state $TMPDIR/assay --slice $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT

Ctrl-C cancels the run, waits until every process of it is gone and prints what was measured; a
second Ctrl-C leaves at once. SIGTERM, by which a batch system ends a job, does what the first
Ctrl-C does, and the exit code is 143; more of them change nothing. A lost terminal (SIGHUP) leaves
the run going as --detach does: `assay watch last` follows it again.

Examples:
  assay run m.yaml
  assay run m.yaml --detach && assay watch last
  assay run m.yaml --label team=cnn --label why="new driver"
  assay run m.yaml --quiet --format json > results.json)";

inline constexpr char kCompletionFooter[] =
    R"(Commands, options and their values, files, ids of runs and names of nodes. For ids and names the
coordinator is asked, with what the line says of it (--state, --coordinator, --tls-*).

Examples:
  source <(assay completion bash)                               in ~/.bashrc
  assay completion zsh > ~/.zfunc/_assay                        with ~/.zfunc in fpath
  assay completion fish > ~/.config/fish/completions/assay.fish)";

inline constexpr char kPlanFooter[] =
    R"(Needs no server, no GPU and no framework. With --cards or --coordinator it also says which specs
cannot run there, and why.

Examples:
  assay plan m.yaml
  assay plan m.yaml --cards "RTX 3090,RTX 2080 Ti"
  assay plan --schema > matrix.schema.json      for completion in an editor)";

inline constexpr char kDoctorFooter[] =
    R"(Looks at driver, GPUs, stacks, network, clock, disk, shared memory, limits and processor. Changes
nothing. Exit code 0: all well, or warnings; 1: something is bad; 3: the node could not be asked.

With --runner it starts a program of your own with small cells, good and bad, and says where it does
not keep the protocol and what to change (docs/runner-protocol.md); exit code 2 without such a program.

Examples:
  assay doctor
  assay doctor --node n1
  assay doctor --runner ./my-runner
  assay doctor --format json | jq '.checks[] | select(.state == "bad")')";

}  // namespace assay::cli

#endif  // ASSAY_CLI_HELP_TEXTS_H_
