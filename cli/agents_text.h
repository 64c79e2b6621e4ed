// The fleet as tables, lines and JSON. Pure; text of peers is made printable.
#ifndef ASSAY_CLI_AGENTS_TEXT_H_
#define ASSAY_CLI_AGENTS_TEXT_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
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

}  // namespace assay::cli

#endif  // ASSAY_CLI_AGENTS_TEXT_H_
