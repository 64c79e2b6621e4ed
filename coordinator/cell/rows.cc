#include "coordinator/cell/rows.h"

#include <array>
#include <utility>

namespace assay {
namespace {

constexpr std::array<std::pair<RunState, std::string_view>, 5> kRunStates = {{
    {RunState::kWaiting, "waiting"},
    {RunState::kRunning, "running"},
    {RunState::kCancelling, "cancelling"},
    {RunState::kDone, "done"},
    {RunState::kCancelled, "cancelled"},
}};

constexpr std::array<std::pair<Placement, std::string_view>, 3> kPlacements = {{
    {Placement::kPerCard, "per-card"},
    {Placement::kPerNode, "per-node"},
    {Placement::kPerGpu, "per-gpu"},
}};

}  // namespace

std::string_view RunStateName(RunState state) {
  for (const auto& [value, name] : kRunStates) {
    if (value == state) return name;
  }
  return "done";
}

std::optional<RunState> RunStateFromName(std::string_view name) {
  for (const auto& [value, text] : kRunStates) {
    if (text == name) return value;
  }
  return std::nullopt;
}

std::optional<Placement> PlacementFromName(std::string_view name) {
  for (const auto& [value, text] : kPlacements) {
    if (text == name) return value;
  }
  return std::nullopt;
}

}  // namespace assay
