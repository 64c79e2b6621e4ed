// The fleet as tables, lines and JSON. Pure; text of peers is made printable.
#ifndef ASSAY_CLI_AGENTS_TEXT_H_
#define ASSAY_CLI_AGENTS_TEXT_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/control.h"

namespace assay::cli {

// {"run", "cell", "label", "attempt"} of each.
nlohmann::ordered_json HeldJson(const std::vector<HeldCell>& held);
nlohmann::ordered_json AgentJson(const AgentSummary& agent);

// "run 01J... cell 3, resnet50 train fp32 b64 eager RTX 3090"
std::string HeldText(const HeldCell& held);

// "up", or "lost (drained)": whether a node is there and whether it is drained are two things.
std::string StateText(const AgentSummary& agent);

// One line a node, with a heading; ends in a line feed.
std::string AgentsTable(std::span<const AgentSummary> agents, size_t width, bool color);

// The same for a terminal of `rows`, of which the last stays free for the cursor: what does not fit
// is counted.
std::string AgentsBlock(std::span<const AgentSummary> agents, size_t width, size_t rows,
                        bool color);

// Rows that `text`, which has no escape sequence, takes on a terminal that wraps its lines.
size_t RowsOf(std::string_view text, size_t columns);

// "node7 up: 1 x RTX 3090 (24.0 GiB), stacks libtorch-2.11.0; runs run 01J... cell 3, ..."
std::string AgentLine(const AgentSummary& agent);

// AgentLine of each node that is new or whose line is another than before, and a line for each that
// is not known any more.
std::vector<std::string> AgentChanges(std::span<const AgentSummary> before,
                                      std::span<const AgentSummary> after);

}  // namespace assay::cli

#endif  // ASSAY_CLI_AGENTS_TEXT_H_
