// What agent and coordinator say to each other about gangs, as plain types. The words are those of
// proto/assay/v1/fleet_service.proto; agent/session converts.
#ifndef ASSAY_AGENT_CELL_MESSAGES_H_
#define ASSAY_AGENT_CELL_MESSAGES_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/clock/clock.h"
#include "common/matrix/spec.h"
#include "common/results/outcome.h"
#include "common/results/record.h"

namespace assay {

struct GangMember {
  std::string node;
  std::string gpu_uuid;
  uint32_t local_rank = 0;
};

struct PrepareOrder {
  std::string attempt;
  std::string run;
  uint64_t cell = 0;
  uint32_t repeat = 1;
  Spec spec;
  std::string stack;
  std::vector<GangMember> members;  // in rank order
  std::string endpoint;             // empty for the agent of rank 0
  uint64_t seed = 1;
  double prepare_seconds = 0;
  bool closing = false;  // the last cell that its GPUs may get for now
};

struct StartOrder {
  std::string attempt;
  std::string endpoint;
  double join_seconds = 0;
};

struct AbortOrder {
  std::string attempt;
  Outcome outcome = Outcome::kCancelled;
  std::string reason;
};

struct GangReady {
  std::string attempt;
  std::string endpoint;
  friend bool operator==(const GangReady&, const GangReady&) = default;
};

struct GangRefused {
  std::string attempt;
  std::string reason;
  std::string message;
};

struct RanksJoined {
  std::string attempt;
  std::vector<uint32_t> ranks;
};

struct GangProgress {
  std::string attempt;
  std::string phase;
  uint64_t step = 0;
  double throughput = 0;    // 0 while unknown
  double seconds_left = 0;  // 0 while unknown
};

struct RankReport {
  uint32_t rank = 0;
  std::string gpu_uuid;
  Outcome outcome = Outcome::kFail;
  std::string reason;
  std::string message;
  int exit_code = -1;
  int signal = 0;
  Record fields;  // source `runner` only
  std::string log_tail;
  bool joined = false;
};

struct AttemptReport {
  std::string attempt;
  std::string run;
  uint64_t cell = 0;
  std::string node;
  std::vector<RankReport> ranks;
  Record telemetry;  // source `agent` only
  WallTime started_at{};
  double seconds = 0;
};

// Answers to an offer (GangRefused::reason).
namespace refusal {
inline constexpr char kGpuBusy[] = "gpu_busy";
inline constexpr char kGpuGone[] = "gpu_gone";
inline constexpr char kLockFailed[] = "lock_failed";  // the lock's folder or file cannot be used
inline constexpr char kStackMissing[] = "stack_missing";
inline constexpr char kDiskFull[] = "disk_full";
inline constexpr char kDraining[] = "draining";
inline constexpr char kUnreachable[] = "unreachable_endpoint";
inline constexpr char kBadOffer[] = "bad_offer";
}  // namespace refusal

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_MESSAGES_H_
