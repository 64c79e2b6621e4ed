// completion: shell scripts that complete commands, options and their values, made of the tree of
// options itself, so that they know what this program knows.
//
// Ids of runs and names of nodes are asked of the coordinator when they are needed, by this program
// with the --state, --coordinator, --config and --tls-* that stand on the line; only what looks
// like one is offered, since a shell expands what it completes. Pure.
#ifndef ASSAY_CLI_COMPLETION_H_
#define ASSAY_CLI_COMPLETION_H_

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace assay::cli {

// For "bash", "zsh" or "fish"; empty for another shell.
std::string CompletionScript(const CLI::App& app, std::string_view shell);

}  // namespace assay::cli

#endif  // ASSAY_CLI_COMPLETION_H_
