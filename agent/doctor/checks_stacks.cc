// Stacks, what each can do on each card here, and mpirun.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "agent/doctor/checks.h"
#include "agent/doctor/findings.h"
#include "common/catalog/card_catalog.h"
#include "common/matrix/feasibility.h"
#include "common/results/outcome.h"
#include "common/text/shell_word.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

// "LibTorch 2.11.0, CUDA 13.0, cuDNN 9.19, NCCL 2.28.9", then what else it names.
std::string VersionsOf(const Stack& stack) {
  constexpr std::array<std::pair<const char*, const char*>, 4> kFirst = {
      {{"libtorch", "LibTorch"}, {"cuda", "CUDA"}, {"cudnn", "cuDNN"}, {"nccl", "NCCL"}}};
  std::vector<std::string> parts;
  for (const auto& [key, title] : kFirst) {
    const auto found = stack.versions.find(key);
    if (found != stack.versions.end()) parts.push_back(fmt::format("{} {}", title, found->second));
  }
  for (const auto& [key, value] : stack.versions) {
    const bool first = std::any_of(kFirst.begin(), kFirst.end(),
                                   [&](const auto& pair) { return pair.first == key; });
    if (!first) parts.push_back(fmt::format("{} {}", key, value));
  }
  return fmt::format("{}{}", stack.runner.empty() ? "" : stack.runner + ": ",
                     fmt::join(parts, ", "));
}

// A spec that asks for nothing but what the stack says of itself, so that only card and driver can
// speak against it: a precision that the card has, of those of the stack.
std::optional<Infeasible> WhyNot(const Stack& stack, const Device& device, std::string_view card) {
  Spec spec;
  spec.stack = stack.name;
  const auto first = [](const std::vector<std::string>& words, const std::string& otherwise) {
    return words.empty() ? otherwise : words.front();
  };
  spec.model = first(stack.models, "");
  spec.mode = first(stack.modes, spec.mode);
  spec.lane = first(stack.lanes, spec.lane);
  spec.layout = first(stack.layouts, spec.layout);
  std::optional<Infeasible> why;
  for (const std::string& precision : stack.precisions) {
    spec.precision = precision;
    auto this_one = FeasibilityOf(spec, device, card, &stack);
    if (!this_one.has_value()) return std::nullopt;
    // A precision that the card lacks hides what speaks against the stack as a whole.
    if (!why.has_value() || why->reason == reason::kUnsupportedPrecision) why = std::move(this_one);
  }
  return why;
}

DoctorCheck CheckStack(const Facts& facts, const Stack& stack) {
  const std::string name = "stack " + stack.name;
  if (!stack.unusable_reason.empty()) {
    const auto program = facts.stack_programs.find(stack.name);
    return Bad(
        name, ScrubUtf8(stack.unusable_reason),
        program == facts.stack_programs.end() ? "" : ShellWord(program->second) + " --stack-info");
  }
  std::vector<std::string> refusals;
  std::set<std::string> seen;
  for (const Device& device : facts.devices) {
    const std::string card = IdentifyDevice(device).name;
    if (!device.usable || device.simulated != stack.simulated || !seen.insert(card).second)
      continue;
    if (const auto why = WhyNot(stack, device, card)) refusals.push_back(why->message);
  }
  const std::string versions = VersionsOf(stack);
  if (refusals.empty()) return Good(name, versions);
  return Warn(name, fmt::format("{}; {}", versions, fmt::join(refusals, "; ")));
}

// One line for each kind of card: which stacks serve it.
void CheckCards(const Facts& facts, std::vector<DoctorCheck>& checks) {
  std::set<std::string> seen;
  for (const Device& device : facts.devices) {
    const std::string card = IdentifyDevice(device).name;
    if (!device.usable || !seen.insert(card).second) continue;
    std::vector<std::string> serving, refusals;
    for (const Stack& stack : facts.stacks) {
      if (!stack.unusable_reason.empty()) continue;  // said by itself
      if (stack.simulated && !device.simulated) continue;
      if (device.simulated && !stack.simulated) continue;
      const auto why = WhyNot(stack, device, card);
      if (why.has_value()) {
        refusals.push_back(why->message);
      } else {
        serving.push_back(stack.name);
      }
    }
    if (!serving.empty()) {
      checks.push_back(Good("card " + card, "served by " + Listed(serving)));
    } else {
      checks.push_back(Bad("card " + card,
                           refusals.empty() ? "no stack is installed that can measure on it"
                                            : fmt::format("no stack can measure on it: {}",
                                                          fmt::join(refusals, "; ")),
                           "ls " + ShellWord(facts.stacks_dir)));
    }
  }
}

DoctorCheck CheckMpirun(const Facts& facts) {
  const CommandFacts& mpirun = facts.mpirun;
  const auto gpus = std::count_if(facts.devices.begin(), facts.devices.end(), [](const Device& d) {
    return d.kind == "gpu" && d.usable && !d.simulated;
  });
  if (mpirun.path.empty()) {
    const std::string text = "no mpirun on PATH; only ranks that MPI starts need it";
    if (gpus < 2) return Good("mpirun", text);
    return Warn("mpirun", text, "sudo apt-get install openmpi-bin");
  }
  if (!mpirun.error.empty()) {
    return Warn("mpirun", mpirun.error, ShellWord(mpirun.path) + " --version");
  }
  if (mpirun.version.empty()) {
    return NotKnown("mpirun", mpirun.path + " is there; not started while a cell is measured");
  }
  return Good("mpirun", fmt::format("{} ({})", mpirun.version, mpirun.path));
}

}  // namespace

void CheckStacks(const Facts& facts, std::vector<DoctorCheck>& checks) {
  if (facts.measuring) {
    checks.push_back(NotKnown(
        "stacks", "not asked: a cell is measured here, and starting programs would disturb it"));
  } else {
    for (const std::string& warning : facts.stack_warnings) {
      const bool none = facts.stacks.empty();
      checks.push_back(Bad("stacks", warning, none ? "ls " + ShellWord(facts.stacks_dir) : ""));
    }
    for (const Stack& stack : facts.stacks) checks.push_back(CheckStack(facts, stack));
    if (!facts.stacks.empty()) CheckCards(facts, checks);
  }
  checks.push_back(CheckMpirun(facts));
}

}  // namespace assay
