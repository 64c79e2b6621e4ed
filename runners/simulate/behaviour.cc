#include "runners/simulate/behaviour.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <vector>

#include "runners/common/bad_input.h"

namespace assay::simulate {
namespace {

std::vector<std::string> Split(const std::string& text, const std::string& separators) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text) {
    if (separators.find(c) == std::string::npos) {
      part.push_back(c);
    } else {
      parts.push_back(part);
      part.clear();
    }
  }
  parts.push_back(part);
  for (std::string& p : parts) {
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!p.empty() && blank(p.back())) p.pop_back();
    while (!p.empty() && blank(p.front())) p.erase(0, 1);
  }
  std::erase_if(parts, [](const std::string& p) { return p.empty(); });
  return parts;
}

double NumberOf(const std::string& text, const std::string& rule, double least, double most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least) ||
      !(value <= most)) {
    throw BadInput("ASSAY_SIMULATE: '" + rule + "': '" + text + "' is no number in its range");
  }
  return value;
}

std::map<std::string, std::string> FieldsOf(const CellFile& cell) {
  const Spec& s = cell.spec;
  return {{"model", s.model},
          {"mode", s.mode},
          {"precision", s.precision},
          {"batch", s.batch == kBatchMax ? "max" : std::to_string(s.batch)},
          {"lane", s.lane},
          {"layout", s.layout},
          {"accumulate", std::to_string(s.accumulate)},
          {"scaling", s.scaling},
          {"image", s.image},
          {"gpus", std::to_string(s.gpus)},
          {"nodes", std::to_string(s.nodes)},
          {"stack", cell.stack},
          {"key", s.key},
          {"cell", std::to_string(cell.cell)},
          {"repeat", std::to_string(cell.repeat)},
          {"rank", std::to_string(cell.rank)},
          {"local_rank", std::to_string(cell.local_rank)},
          {"card", cell.card},
          {"uuid", cell.device_uuid}};
}

bool Holds(const std::string& conditions, const std::map<std::string, std::string>& fields,
           const std::string& rule) {
  if (conditions == "default") return true;
  bool all = true;
  for (const std::string& condition : Split(conditions, ",")) {
    const size_t equals = condition.find('=');
    const auto field = fields.find(condition.substr(0, equals));
    if (equals == std::string::npos || field == fields.end()) {
      throw BadInput("ASSAY_SIMULATE: '" + rule + "': '" + condition +
                     "' is no condition like model=resnet50");
    }
    all = all && field->second == condition.substr(equals + 1);
  }
  return all;
}

void Apply(const std::string& action, const std::string& rule, Behaviour& b) {
  const size_t equals = action.find('=');
  const std::string name = action.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : action.substr(equals + 1);
  const std::map<std::string, std::function<void()>> plain = {
      {"no_result", [&] { b.exit_code = 0; }},
      {"hang_before_join", [&] { b.hang_before_join = true; }},
      {"hang", [&] { b.hang = true; }},
      {"hang_ignore_term", [&] { b.hang = b.ignore_term = true; }},
      {"ignore_term", [&] { b.ignore_term = true; }},
      {"garbage", [&] { b.garbage = true; }},
      {"huge_line", [&] { b.huge_line = true; }},
      {"flood", [&] { b.flood = true; }},
      {"oom", [&] { b.oom = true; }},
      {"non_finite_loss", [&] { b.non_finite_loss = true; }},
      {"wrong_device_steps", [&] { b.wrong_device_steps = true; }},
      {"timer", [&] { b.timer = true; }},
      {"early_clock", [&] { b.early_clock = true; }},
      {"constant_inputs", [&] { b.constant_inputs = true; }},
      {"close_records", [&] { b.close_records = true; }},
      {"grandchild", [&] { b.grandchild = true; }},
      {"error", [&] { b.error = true; }},
      {"crash", [&] { b.crash_signal = SIGSEGV; }},
  };
  if (name == "crash" && !value.empty()) {
    b.crash_signal = static_cast<int>(NumberOf(value, rule, 1, 64));
  } else if (name == "exit") {
    b.exit_code = static_cast<int>(NumberOf(value, rule, 0, 255));
  } else if (name == "slow") {
    b.slow_seconds = NumberOf(value, rule, 0, 86400);
  } else if (name == "realtime") {
    b.realtime = NumberOf(value, rule, 0, 1000);
  } else if (const auto found = plain.find(name); found != plain.end() && value.empty()) {
    found->second();
  } else {
    throw BadInput("ASSAY_SIMULATE: '" + rule + "': unknown action '" + action + "'");
  }
}

}  // namespace

Behaviour BehaviourFor(const std::string& rules, const CellFile& cell) {
  const auto fields = FieldsOf(cell);
  std::optional<Behaviour> taken;
  for (const std::string& rule : Split(rules, ";\n")) {
    const size_t colon = rule.rfind(':');
    if (colon == std::string::npos) {
      throw BadInput("ASSAY_SIMULATE: '" + rule + "' is not of the form CONDITION:ACTION");
    }
    Behaviour behaviour;
    for (const std::string& action : Split(rule.substr(colon + 1), "+")) {
      Apply(action, rule, behaviour);
    }
    if (Holds(rule.substr(0, colon), fields, rule) && !taken) taken = behaviour;
  }
  return taken.value_or(Behaviour{});
}

std::string RulesFromEnvironment() {
  if (const char* path = std::getenv("ASSAY_SIMULATE_FILE"); path != nullptr && *path != '\0') {
    std::ifstream file(path);
    if (!file) throw BadInput(std::string("cannot read ASSAY_SIMULATE_FILE ") + path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  const char* rules = std::getenv("ASSAY_SIMULATE");
  return rules == nullptr ? "" : rules;
}

}  // namespace assay::simulate
