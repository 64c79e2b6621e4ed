#include "common/results/reason_codes.h"

#include <algorithm>
#include <array>

namespace assay {
namespace {

constexpr std::array kReasons = {reason::kOutOfMemory,
                                 reason::kCrash,
                                 reason::kBadOutput,
                                 reason::kNonFiniteLoss,
                                 reason::kEccError,
                                 reason::kShmTooSmall,
                                 reason::kStartFailed,
                                 reason::kJoinTimeout,
                                 reason::kGpuGone,
                                 reason::kRunnerError,
                                 reason::kCellLimit,
                                 reason::kRunLimit,
                                 reason::kNoProgress,
                                 reason::kAgentLost,
                                 reason::kUserCancelled,
                                 reason::kUnknownModel,
                                 reason::kUnsupportedPrecision,
                                 reason::kUnsupportedLane,
                                 reason::kUnsupportedMode,
                                 reason::kUnsupportedArch,
                                 reason::kDriverTooOld,
                                 reason::kStackMissing,
                                 reason::kTooFewGpus,
                                 reason::kUnsupportedValue,
                                 reason::kMigWorldSize};

}  // namespace

std::string_view KnownReason(std::string_view text, std::string_view otherwise) {
  const auto found = std::find(kReasons.begin(), kReasons.end(), text);
  return found == kReasons.end() ? otherwise : *found;
}

std::string_view DefaultReason(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "";
    case Outcome::kMemLimit:
      return reason::kOutOfMemory;
    case Outcome::kUnsupported:
      return reason::kUnsupportedValue;
    case Outcome::kHung:
      return reason::kNoProgress;
    case Outcome::kTimeout:
      return reason::kCellLimit;
    case Outcome::kLost:
      return reason::kAgentLost;
    case Outcome::kCancelled:
      return reason::kUserCancelled;
    case Outcome::kFail:
      break;
  }
  return reason::kRunnerError;
}

}  // namespace assay
