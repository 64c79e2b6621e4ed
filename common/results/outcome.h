// Outcome: what happened to a cell, written once. The table of docs/architecture.md in code.
#ifndef ASSAY_COMMON_RESULTS_OUTCOME_H_
#define ASSAY_COMMON_RESULTS_OUTCOME_H_

#include <optional>
#include <string_view>

namespace assay {

enum class Outcome { kOk = 1, kMemLimit, kFail, kUnsupported, kHung, kTimeout, kLost, kCancelled };

// "ok", "mem_limit", ... as files and tables spell it.
std::string_view OutcomeName(Outcome outcome);
std::optional<Outcome> OutcomeFromName(std::string_view name);

// How often a cell with this outcome is tried again: lost twice, hung and timeout once (elsewhere
// where there is an elsewhere; not past the run's limit), fail once and only for infrastructure
// reasons.
int RetriesAllowed(Outcome outcome, std::string_view reason);

// Exit code that a run with this outcome in it gets: 0, 1 or 130 (docs/architecture.md).
int ExitCodeOf(Outcome outcome);

// True for fail, hung, timeout, lost.
bool IsFailure(Outcome outcome);

// Reason codes: closed list, so that a chart can group by them. Each but `ok` has one and a
// sentence beside it.
namespace reason {
inline constexpr std::string_view kOutOfMemory = "out_of_memory";
inline constexpr std::string_view kCrash = "crash";           // signal or exit code
inline constexpr std::string_view kBadOutput = "bad_output";  // broke the protocol
inline constexpr std::string_view kNonFiniteLoss = "non_finite_loss";
inline constexpr std::string_view kEccError = "ecc_error";
inline constexpr std::string_view kShmTooSmall = "shm_too_small";
inline constexpr std::string_view kStartFailed = "start_failed";  // infrastructure
inline constexpr std::string_view kJoinTimeout = "join_timeout";  // infrastructure
inline constexpr std::string_view kGpuGone = "gpu_gone";          // infrastructure
inline constexpr std::string_view kRunnerError = "runner_error";  // what() of the runner
inline constexpr std::string_view kCellLimit = "cell_limit";
inline constexpr std::string_view kRunLimit = "run_limit";
inline constexpr std::string_view kNoProgress = "no_progress";
inline constexpr std::string_view kAgentLost = "agent_lost";
inline constexpr std::string_view kUserCancelled = "user_cancelled";
inline constexpr std::string_view kUnknownModel = "model_not_in_stack";
inline constexpr std::string_view kUnsupportedPrecision = "unsupported_precision";
inline constexpr std::string_view kUnsupportedLane = "lane_not_in_stack";
inline constexpr std::string_view kUnsupportedMode = "mode_not_in_stack";
inline constexpr std::string_view kUnsupportedArch = "unsupported_arch";
inline constexpr std::string_view kDriverTooOld = "driver_too_old";
inline constexpr std::string_view kStackMissing = "stack_missing";
inline constexpr std::string_view kTooFewGpus = "too_few_gpus";
inline constexpr std::string_view kUnsupportedValue =
    "value_not_in_stack";  // layout, batch max, ...
inline constexpr std::string_view kMigWorldSize = "mig_world_size";
}  // namespace reason

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_OUTCOME_H_
