// StackEnvironment: what the manifest of a stack sets for its runner, as this machine has it.
//
// Thread rule: any thread; StacksFolder() reads the environment, which nobody may change meanwhile.
#ifndef ASSAY_CLI_STACK_ENVIRONMENT_H_
#define ASSAY_CLI_STACK_ENVIRONMENT_H_

#include <map>
#include <optional>
#include <string>

namespace assay::cli {

// Of the first manifest (NAME.json, docs/protocol.md) in `folder` whose name is `stack`; nullopt
// where none can be read. What is no text is left out: the agent would have refused the manifest.
std::optional<std::map<std::string, std::string>> StackEnvironment(const std::string& folder,
                                                                   const std::string& stack);

// $ASSAY_STACKS, else share/assay/stacks beside the folder of this program, as the agent's default.
std::string StacksFolder();

}  // namespace assay::cli

#endif  // ASSAY_CLI_STACK_ENVIRONMENT_H_
