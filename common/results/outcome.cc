#include "common/results/outcome.h"

#include <array>
#include <utility>

namespace assay {
namespace {

constexpr std::array<std::pair<Outcome, std::string_view>, 8> kNames = {{
    {Outcome::kOk, "ok"},
    {Outcome::kMemLimit, "mem_limit"},
    {Outcome::kFail, "fail"},
    {Outcome::kUnsupported, "unsupported"},
    {Outcome::kHung, "hung"},
    {Outcome::kTimeout, "timeout"},
    {Outcome::kLost, "lost"},
    {Outcome::kCancelled, "cancelled"},
}};

}  // namespace

std::string_view OutcomeName(Outcome outcome) {
  for (const auto& [value, name] : kNames) {
    if (value == outcome) return name;
  }
  return "fail";
}

std::optional<Outcome> OutcomeFromName(std::string_view name) {
  for (const auto& [value, text] : kNames) {
    if (text == name) return value;
  }
  return std::nullopt;
}

int RetriesAllowed(Outcome outcome, std::string_view reason) {
  switch (outcome) {
    case Outcome::kLost:
      return 2;
    case Outcome::kHung:
      return 1;
    case Outcome::kTimeout:
      return reason == reason::kRunLimit ? 0 : 1;
    case Outcome::kFail:
      return reason == reason::kStartFailed || reason == reason::kJoinTimeout ||
                     reason == reason::kGpuGone
                 ? 1
                 : 0;
    default:
      return 0;
  }
}

int ExitCodeOf(Outcome outcome) {
  if (outcome == Outcome::kCancelled) return 130;
  return IsFailure(outcome) ? 1 : 0;
}

bool IsFailure(Outcome outcome) {
  return outcome == Outcome::kFail || outcome == Outcome::kHung || outcome == Outcome::kTimeout ||
         outcome == Outcome::kLost;
}

}  // namespace assay
