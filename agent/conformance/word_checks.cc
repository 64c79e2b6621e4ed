#include "agent/conformance/word_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "agent/conformance/cell_checks.h"
#include "agent/doctor/findings.h"
#include "agent/inventory/stack_manifests.h"
#include "common/catalog/workload_catalog.h"
#include "common/runner_protocol/records.h"
#include "common/status/status.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(ScrubForTerminal(line));
  }
  return lines;
}

bool Answered(const TrialEnd& end) { return !end.timed_out && end.exit_code == record::kExitOk; }

// Words that no matrix can ask for, of the axes whose words are fixed.
std::vector<std::string> WordsOfNoMatrix(const Stack& stack) {
  std::vector<std::string> unknown;
  const WorkloadCatalog& catalog = BuiltinWorkloads();
  std::vector<std::string> precisions;
  for (const PrecisionFacts& precision : catalog.precisions()) precisions.push_back(precision.name);
  for (const auto& [words, known] :
       {std::pair(&stack.modes, &catalog.modes()), std::pair(&stack.lanes, &catalog.lanes()),
        std::pair(&stack.layouts, &catalog.layouts()),
        std::pair(&stack.precisions, static_cast<const std::vector<std::string>*>(&precisions))}) {
    for (const std::string& word : *words) {
      if (std::find(known->begin(), known->end(), word) == known->end()) {
        unknown.push_back(ScrubForTerminal(word));
      }
    }
  }
  return unknown;
}

}  // namespace

DoctorCheck CheckStackInfo(const TrialEnd& end, Stack& stack) {
  const char* const remedy = "print one JSON object and exit with 0 within 10 s";
  if (!Answered(end)) return Bad("stack-info", "--stack-info: " + HowItEnded(end), remedy);
  if (const absl::Status parsed = ParseStackInfo(end.output, stack); !parsed.ok()) {
    return Bad("stack-info", Message(parsed), remedy);
  }
  std::vector<std::string> empty;
  for (const auto& [name, words] :
       {std::pair("models", &stack.models), std::pair("modes", &stack.modes),
        std::pair("precisions", &stack.precisions), std::pair("lanes", &stack.lanes),
        std::pair("device_kinds", &stack.device_kinds)}) {
    if (words->empty()) empty.emplace_back(name);
  }
  if (!empty.empty()) {
    return Bad("stack-info", Listed(empty) + " without an entry: no cell can be placed on it",
               "list what the program can run");
  }
  if (const std::vector<std::string> unknown = WordsOfNoMatrix(stack); !unknown.empty()) {
    return Warn("stack-info", "no matrix can ask for " + Listed(unknown),
                "use the words of docs/matrix.md");
  }
  if (stack.versions.empty()) {
    return Warn("stack-info", "no versions: results of two builds could not be told apart",
                "give versions of the runner and its framework");
  }
  return Good("stack-info", fmt::format("{}, {} models, lanes {}", ScrubForTerminal(stack.runner),
                                        stack.models.size(), Listed(stack.lanes)));
}

DoctorCheck CheckList(const TrialEnd& end, const Stack& stack) {
  if (!Answered(end)) {
    return Bad("list", "--list: " + HowItEnded(end), "print one model a line and exit with 0");
  }
  const std::vector<std::string> lines = LinesOf(end.output);
  if (std::set<std::string>(lines.begin(), lines.end()) !=
      std::set<std::string>(stack.models.begin(), stack.models.end())) {
    return Bad(
        "list",
        fmt::format("--list has {} and --stack-info {}", Listed(lines), Listed(stack.models)),
        "say the same models in both");
  }
  return Good("list", fmt::format("{} models, as --stack-info says", lines.size()));
}

DoctorCheck CheckDescribe(const TrialEnd& known, const TrialEnd& unknown,
                          const std::string& model) {
  const auto json = nlohmann::json::parse(known.output, nullptr, /*allow_exceptions=*/false);
  if (!Answered(known) || !json.is_object()) {
    return Bad("describe", fmt::format("--describe {}: {}", model, HowItEnded(known)),
               "print one JSON object: model, parameters, flops_per_sample, sample_unit");
  }
  const auto unit = json.find("sample_unit");
  if (unit == json.end() || !unit->is_string() || json.find("parameters") == json.end()) {
    return Warn("describe", fmt::format("--describe {} lacks parameters or sample_unit", model),
                "add them; null where they are not known");
  }
  if (unknown.timed_out || unknown.exit_code != record::kExitBadInput) {
    return Bad("describe", "--describe of a model that there is not: " + HowItEnded(unknown),
               "exit with 2 and one sentence on standard error");
  }
  return Good("describe",
              fmt::format("{} in {}", model, ScrubForTerminal(unit->get<std::string>())));
}

DoctorCheck CheckVersionText(const TrialEnd& end) {
  const std::vector<std::string> lines = LinesOf(end.output);
  if (!Answered(end) || lines.empty()) {
    return Warn("version", "--version: " + HowItEnded(end), "print name and version in one line");
  }
  return Good("version", lines.front().substr(0, Utf8Boundary(lines.front(), 100)));
}

DoctorCheck CheckArguments(const TrialEnd& end) {
  if (end.timed_out || end.exit_code != record::kExitBadInput) {
    return Bad("arguments", "an argument that there is not: " + HowItEnded(end),
               "exit with 2 and one sentence on standard error");
  }
  return Good("arguments", "an argument that there is not: exit code 2");
}

}  // namespace assay
