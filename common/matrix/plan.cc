#include "common/matrix/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/catalog/card_catalog.h"
#include "common/matrix/feasibility.h"
#include "common/results/outcome.h"
#include "common/text/number_format.h"
#include "common/yaml/diagnostics.h"

namespace assay {
namespace {

std::optional<Infeasible> TooFewGpus(const Spec& spec, const PlanCard& card) {
  if (card.gpus > 0 && spec.gpus > card.gpus) {
    return Infeasible{reason::kTooFewGpus,
                      fmt::format("{} GPUs of one node are asked for, and no node has more than {} "
                                  "of {}",
                                  spec.gpus, card.gpus, card.name)};
  }
  if (card.nodes > 0 && spec.nodes > card.nodes) {
    return Infeasible{reason::kTooFewGpus, fmt::format("{} nodes are asked for, and {} have {}",
                                                       spec.nodes, card.nodes, card.name)};
  }
  return std::nullopt;
}

PlanRow RowFor(const Spec& spec, int64_t repeat, const PlanCard& card) {
  PlanRow row;
  row.spec = spec;
  row.card = card.name;
  row.target = card.target;
  row.repeat = repeat;
  std::optional<Infeasible> why;
  if (card.stacks) {
    StackChoice choice = ChooseStack(spec, card.device, card.name, *card.stacks);
    if (choice.stack != nullptr) row.spec.stack = choice.stack->name;
    why = std::move(choice.infeasible);
  } else {
    why = FeasibilityOf(spec, card.device, card.name, nullptr);
  }
  if (!why) why = TooFewGpus(spec, card);
  row.feasible = !why.has_value();
  if (why) {
    row.reason = why->reason;
    row.message = why->message;
  } else {
    row.warning = MemoryWarning(spec, card.device, card.name);
  }
  return row;
}

// Seconds of one cell at most: it stops by itself at max_seconds and is given up at cell_seconds.
double CellBoundSeconds(const Spec& spec) {
  return std::min(spec.stop.max_seconds + kCellOverheadSeconds, spec.limits.cell_seconds);
}

void AddRow(PlanRow row, Plan* plan) {
  const auto repeat = static_cast<uint64_t>(row.repeat);
  if (row.feasible.value_or(true)) {
    plan->cells += repeat;
    plan->upper_bound_seconds += static_cast<double>(repeat) * CellBoundSeconds(row.spec);
  } else {
    plan->infeasible_cells += repeat;
  }
  plan->rows.push_back(std::move(row));
}

// One line a card; the rows say which.
void AddMemoryWarnings(Plan* plan) {
  std::map<std::string, uint64_t> cells;
  for (const PlanRow& row : plan->rows) {
    if (!row.warning.empty()) cells[row.card] += static_cast<uint64_t>(row.repeat);
  }
  for (const auto& [card, count] : cells) {
    plan->warnings.push_back(
        fmt::format("{}: {} may end as mem_limit, by the catalogue's estimate of their memory",
                    card, Counted(count, "cell")));
  }
}

PlanCard CardFromFacts(const CardFacts& facts) {
  PlanCard card;
  card.name = card.target = facts.name;
  card.device.raw_name = facts.name;
  card.device.cc_major = facts.cc_major.value_or(0);
  card.device.cc_minor = facts.cc_minor.value_or(0);
  card.device.sm_count = facts.sm_count.value_or(0);
  card.device.memory_total_bytes =
      static_cast<uint64_t>(facts.memory_gib.value_or(0) * 1024.0 * 1024.0 * 1024.0);
  return card;
}

std::string TargetOf(const NodeInventory& node, const Device& device, const std::string& card,
                     Placement placement) {
  switch (placement) {
    case Placement::kPerCard:
      return card;
    case Placement::kPerNode:
      return node.node + "/" + card;
    case Placement::kPerGpu:
      return device.uuid;
  }
  return card;
}

void AddStacks(const std::vector<Stack>& stacks, PlanCard* card) {
  if (!card->stacks) card->stacks.emplace();
  for (const Stack& stack : stacks) {
    const auto same = [&](const Stack& other) {
      return other.name == stack.name && other.digest == stack.digest;
    };
    if (std::none_of(card->stacks->begin(), card->stacks->end(), same)) {
      card->stacks->push_back(stack);
    }
  }
}

}  // namespace

Plan BuildPlan(const Matrix& matrix, const std::optional<std::vector<PlanCard>>& cards) {
  Plan plan;
  plan.specs = matrix.specs.size();
  plan.targets = cards ? cards->size() : 1;
  plan.warnings = matrix.warnings;
  for (const Spec& spec : matrix.specs) {
    if (!cards) {
      PlanRow row;
      row.spec = spec;
      row.repeat = matrix.repeat;
      AddRow(std::move(row), &plan);
      continue;
    }
    for (const PlanCard& card : *cards) AddRow(RowFor(spec, matrix.repeat, card), &plan);
  }
  AddMemoryWarnings(&plan);
  return plan;
}

absl::StatusOr<std::vector<PlanCard>> PlanCardsFromNames(const std::vector<std::string>& names) {
  std::vector<PlanCard> cards;
  for (const std::string& name : names) {
    if (FoldCardName(name) == "cpu") {
      PlanCard card;
      card.name = card.target = card.device.raw_name = "CPU";
      card.device.kind = "cpu";
      cards.push_back(std::move(card));
      continue;
    }
    const auto found = BuiltinCards().FindByName(name);
    if (found.empty()) {
      const std::string nearest = BuiltinCards().NearestName(name);
      return absl::InvalidArgumentError(
          fmt::format("--cards: the catalogue has no card '{}'{}", Printable(name, 60),
                      nearest.empty() ? "; `cpu` stands for a processor"
                                      : fmt::format("; did you mean '{}'?", nearest)));
    }
    for (const CardFacts* facts : found) cards.push_back(CardFromFacts(*facts));
  }
  if (cards.empty()) return absl::InvalidArgumentError("--cards: no card is named");
  std::vector<PlanCard> unique;
  std::set<std::string> seen;
  for (PlanCard& card : cards) {
    if (seen.insert(card.name).second) unique.push_back(std::move(card));
  }
  return unique;
}

std::vector<PlanCard> PlanCardsFromFleet(const std::vector<NodeInventory>& nodes,
                                         const Selection& select) {
  std::vector<PlanCard> cards;
  for (const NodeInventory& node : nodes) {
    std::set<std::string> counted;  // targets that this node was counted for
    for (const Device& device : node.devices) {
      const std::string name = IdentifyDevice(device).name;
      if (!device.usable || !select.Selects(name)) continue;
      const std::string target = TargetOf(node, device, name, select.placement);
      auto card = std::find_if(cards.begin(), cards.end(), [&](const PlanCard& other) {
        return other.target == target && other.device.simulated == device.simulated;
      });
      if (card == cards.end()) {
        cards.push_back({name, target, device, std::nullopt, 0, 0});
        card = cards.end() - 1;
      }
      AddStacks(node.stacks, &*card);
      if (counted.insert(target).second) ++card->nodes;
      const auto on_node =
          std::count_if(node.devices.begin(), node.devices.end(), [&](const Device& other) {
            return other.usable &&
                   (select.placement == Placement::kPerGpu ? other.uuid == device.uuid
                                                           : IdentifyDevice(other).name == name);
          });
      card->gpus = std::max<int64_t>(card->gpus, on_node);
    }
  }
  return cards;
}

}  // namespace assay
