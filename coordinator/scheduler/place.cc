#include "coordinator/scheduler/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/results/outcome.h"

namespace assay {
namespace {

using Home = std::pair<const Node*, std::vector<size_t>>;

void CannotRun(Place& place, std::string_view reason, std::string message) {
  place.candidates.clear();
  place.reason = reason;
  place.message = std::move(message);
}

std::string VersionsText(const Stack& stack) {
  std::string text = stack.name;
  for (const auto& [name, version] : stack.versions) text += fmt::format(" {} {}", name, version);
  return text;
}

// The devices of the card that has most of them: a gang never mixes cards unasked.
std::vector<size_t> OneCard(const Node& node, const std::vector<size_t>& matching) {
  std::map<std::string_view, std::vector<size_t>> by_card;
  for (const size_t i : matching) by_card[node.cards[i]].push_back(i);
  std::vector<size_t> best;
  for (auto& [card, devices] : by_card) {
    if (devices.size() > best.size()) best = std::move(devices);
  }
  return best;
}

// What no stack or GPU can change.
std::string ImpossibleShape(const Spec& spec, Placement placement) {
  if (placement == Placement::kPerNode && spec.nodes > 1) {
    return fmt::format("placement per-node puts a spec on one node, and it asks for {} nodes",
                       spec.nodes);
  }
  if (placement == Placement::kPerGpu && spec.WorldSize() > 1) {
    return fmt::format("placement per-gpu puts a spec on one GPU, and it asks for {} ranks",
                       spec.WorldSize());
  }
  return "";
}

// Fills in the reason of what no fleet could run.
bool IsRefusedAnywhere(const Spec& spec, Placement placement, Place& place) {
  if (spec.colocate == "all" && (spec.WorldSize() > 1 || placement == Placement::kPerGpu)) {
    CannotRun(place, reason::kUnsupportedValue,
              spec.WorldSize() > 1
                  ? fmt::format("colocate: all runs a cell of one rank on every GPU of a node, and "
                                "this one asks for {} ranks",
                                spec.WorldSize())
                  : "colocate: all takes every GPU of a node, and placement per-gpu one");
    return true;
  }
  if (spec.colocate == "all" && spec.batch == kBatchMax) {
    CannotRun(
        place, reason::kUnsupportedValue,
        "colocate: all runs the same cell on every GPU, and batch: max may be another on each");
    return true;
  }
  if (std::string why = ImpossibleShape(spec, placement); !why.empty()) {
    CannotRun(place, reason::kTooFewGpus, std::move(why));
    return true;
  }
  return false;
}

std::string KeyOf(const Place& place, std::string_view target) {
  std::string key = fmt::format("{}x{}{} {}", place.nodes, place.gpus,
                                place.everywhere ? " everywhere" : "", target);
  for (const Candidate& c : place.candidates) key += fmt::format("\n{}:{}", c.node, c.stack);
  return key;
}

}  // namespace

bool PlaceFinder::Matches(const Fleet& fleet, const Node& node, size_t device,
                          const Target& target) const {
  const Device& d = node.inventory.devices[device];
  if (d.simulated != target.simulated || !fleet.Offers(node, d)) return false;
  if (!select_.Selects(node.cards[device])) return false;
  switch (select_.placement) {
    case Placement::kPerCard:
      return node.cards[device] == target.name;
    case Placement::kPerNode:
      return node.name == target.name;
    case Placement::kPerGpu:
      return d.uuid == target.name;
  }
  return false;
}

std::vector<Target> PlaceFinder::TargetsOf(const Fleet& fleet) const {
  std::set<Target> targets;
  for (const auto& [name, node] : fleet.nodes()) {
    if (!node.Up()) continue;
    for (size_t i = 0; i < node.inventory.devices.size(); ++i) {
      const Device& d = node.inventory.devices[i];
      Target target;
      target.simulated = d.simulated;
      target.name = select_.placement == Placement::kPerCard   ? node.cards[i]
                    : select_.placement == Placement::kPerNode ? name
                                                               : d.uuid;
      if (Matches(fleet, node, i, target)) targets.insert(std::move(target));
    }
  }
  return {targets.begin(), targets.end()};
}

const PlaceFinder::Answer& PlaceFinder::Ask(const Spec& spec, const Node& node, size_t device) {
  const uint64_t key = (uint64_t{spec.index} << 32) | node.signatures[device];
  const auto [it, fresh] = answers_.try_emplace(key);
  if (!fresh) return it->second;
  const StackChoice choice = deps_.choose_stack(spec, node.inventory.devices[device],
                                                node.cards[device], node.inventory.stacks);
  Answer& answer = it->second;
  if (choice.stack != nullptr) {
    answer.stack = choice.stack->name;
    answer.runner = choice.stack->runner;
    answer.simulated = choice.stack->simulated;
  } else if (choice.infeasible.has_value()) {
    answer.reason = choice.infeasible->reason;
    answer.message = choice.infeasible->message;
  } else {
    answer.reason = reason::kStackMissing;
    answer.message = fmt::format("no stack of {} can run it", node.name);
  }
  return answer;
}

Place PlaceFinder::Find(const Fleet& fleet, const Spec& spec, const Target& target) {
  Place place;
  place.gpus = spec.gpus;
  place.everywhere = spec.colocate == "all";
  place.nodes = spec.nodes;
  if (IsRefusedAnywhere(spec, select_.placement, place)) return place;
  std::vector<Home> homes;
  size_t most = 0;
  for (const auto& [name, node] : fleet.nodes()) {
    if (!node.Up()) continue;
    std::vector<size_t> matching;
    for (size_t i = 0; i < node.inventory.devices.size(); ++i) {
      if (Matches(fleet, node, i, target)) matching.push_back(i);
    }
    matching = OneCard(node, matching);
    most = std::max(most, matching.size());
    if (!matching.empty()) homes.emplace_back(&node, std::move(matching));
  }
  if (homes.empty()) {
    place.absent = true;
    return place;
  }
  const Device& sample = homes[0].first->inventory.devices[homes[0].second[0]];
  if (sample.kind == "mig" && (spec.WorldSize() > 1 || place.everywhere)) {
    CannotRun(place, reason::kMigWorldSize,
              fmt::format("{} is a MIG slice, and a gang cannot span slices", target.name));
    return place;
  }
  std::erase_if(homes, [&](const Home& home) {
    return static_cast<int64_t>(home.second.size()) < spec.gpus;
  });
  if (static_cast<int64_t>(homes.size()) < spec.nodes) {
    CannotRun(place, reason::kTooFewGpus,
              fmt::format("it asks for {} node(s) with {} of {} each; {} connected node(s) have so "
                          "many and the largest has {}",
                          spec.nodes, spec.gpus, target.name, homes.size(), most));
    return place;
  }
  if (spec.nodes > 1) {
    FindMultiNode(spec, homes, place);
  } else {
    for (auto& [node, devices] : homes) {
      const Answer& answer = Ask(spec, *node, devices[0]);
      if (answer.stack.empty()) {
        if (place.reason.empty()) {
          place.reason = answer.reason;
          place.message = answer.message;
        }
        continue;
      }
      place.candidates.push_back({node->name, answer.stack, answer.runner, answer.simulated,
                                  node->inventory_version, std::move(devices)});
    }
  }
  if (place.CanRun()) place.key = KeyOf(place, target.name);
  return place;
}

void PlaceFinder::FindMultiNode(const Spec& spec, const std::vector<Home>& homes,
                                Place& place) const {
  // Stacks by what they are; the newest that enough nodes have is taken.
  std::map<std::string, std::vector<std::pair<const Home*, const Stack*>>> by_build;
  std::string seen;
  for (const Home& home : homes) {
    const Node& node = *home.first;
    for (const Stack& stack : node.inventory.stacks) {
      const StackChoice choice =
          deps_.choose_stack(spec, node.inventory.devices[home.second[0]],
                             node.cards[home.second[0]], std::span<const Stack>(&stack, 1));
      if (choice.stack == nullptr) {
        if (place.reason.empty() && choice.infeasible.has_value()) {
          place.reason = choice.infeasible->reason;
          place.message = choice.infeasible->message;
        }
        continue;
      }
      by_build[VersionsText(stack)].emplace_back(&home, &stack);
      seen += fmt::format("{}{} has {}", seen.empty() ? "" : "; ", node.name, VersionsText(stack));
    }
  }
  std::vector<Stack> common;
  for (const auto& [text, having] : by_build) {
    if (static_cast<int64_t>(having.size()) >= spec.nodes) common.push_back(*having[0].second);
  }
  if (common.empty()) {
    if (!by_build.empty()) {
      CannotRun(
          place, reason::kStackMissing,
          fmt::format("its {} nodes must run one and the same stack, and none is on enough of "
                      "them: {}",
                      spec.nodes, seen));
    } else if (place.reason.empty()) {
      CannotRun(place, reason::kStackMissing, "no node has a stack that can run it");
    }
    return;
  }
  const Home& home = *by_build[VersionsText(common[0])][0].first;
  const StackChoice newest = deps_.choose_stack(spec, home.first->inventory.devices[home.second[0]],
                                                home.first->cards[home.second[0]], common);
  const Stack& chosen = newest.stack != nullptr ? *newest.stack : common[0];
  for (const auto& [on, stack] : by_build[VersionsText(chosen)]) {
    place.candidates.push_back({on->first->name, stack->name, stack->runner, stack->simulated,
                                on->first->inventory_version, on->second});
  }
}

}  // namespace assay
