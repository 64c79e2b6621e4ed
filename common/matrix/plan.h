// Plan: what a matrix would do, on no cards, on named cards or on a fleet. Pure; any thread.
#ifndef ASSAY_COMMON_MATRIX_PLAN_H_
#define ASSAY_COMMON_MATRIX_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/fleet/inventory.h"
#include "common/matrix/matrix.h"
#include "common/matrix/spec.h"

namespace assay {

// Added to `stop.max_seconds` for start, set-up and warm-up of a cell in the bound of the time.
inline constexpr double kCellOverheadSeconds = 60;

// One target as a plan sees it.
struct PlanCard {
  std::string name;    // the catalogue's, or as the driver says it
  std::string target;  // card name, node name or GPU UUID, as the placement says
  Device device;       // fields that are not known are 0 or empty
  std::optional<std::vector<Stack>> stacks;  // empty: not known, only the card is asked
  int64_t gpus = 0;   // usable GPUs of the largest node that has this card; 0: not known
  int64_t nodes = 0;  // nodes that have it; 0: not known
};

// The fields of `assay plan`: key index card stack model mode precision batch lane layout
// accumulate scaling image gpus nodes repeat feasible reason (catalog/fields.yaml, source plan).
struct PlanRow {
  Spec spec;         // stack is set where it is known which one would be taken
  std::string card;  // empty: no fleet, null in JSON
  std::string target;
  int64_t repeat = 0;
  std::optional<bool> feasible;  // empty: no fleet
  std::string reason;            // reason code where infeasible, else empty
  std::string message;           // its sentence
  std::string warning;           // memory estimate above the card's memory, else empty
};

struct Plan {
  std::vector<PlanRow> rows;  // spec by spec in the matrix's order, cards within a spec
  uint64_t specs = 0;
  uint64_t targets = 0;  // 1 with no fleet
  uint64_t cells = 0;    // feasible ones, times repeat
  uint64_t infeasible_cells = 0;
  // Feasible cells times min(max_seconds + kCellOverheadSeconds, cell_seconds), one after another.
  double upper_bound_seconds = 0;
  std::vector<std::string> warnings;  // of the matrix; one a card of memory estimates
};

// `cards` empty (nullopt): no fleet is asked.
Plan BuildPlan(const Matrix& matrix, const std::optional<std::vector<PlanCard>>& cards);

// Cards by name as --cards gives them ("RTX 2080 Ti"; "RTX 3080" gives both products; "cpu" a
// processor). InvalidArgument for an empty list or a name that the catalogue lacks, with the
// nearest one.
absl::StatusOr<std::vector<PlanCard>> PlanCardsFromNames(const std::vector<std::string>& names);

// Targets of an inventory by the matrix's placement and selection; unusable devices left out. With
// per-card, one PlanCard for each card name, holding the stacks of every node that has it.
std::vector<PlanCard> PlanCardsFromFleet(const std::vector<NodeInventory>& nodes,
                                         const Selection& select);

}  // namespace assay

#endif  // ASSAY_COMMON_MATRIX_PLAN_H_
