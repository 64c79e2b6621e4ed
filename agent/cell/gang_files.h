// GangFiles: what an agent keeps on disk for its gangs.
//
//   STATE/cells/ATTEMPT.rankN.json  the cell file of a rank (0600); kept, for `assay reproduce`
//   STATE/logs/ATTEMPT.rankN.log    its output
//   STATE/gangs/ATTEMPT.json        {"pids":[[pid,start_ticks],...],"boot_id":"..."} while it runs
//   STATE/kernel                    the boot and the process namespace that the above are of
//
// Owner: GangHost. Thread rule: one thread.
#ifndef ASSAY_AGENT_CELL_GANG_FILES_H_
#define ASSAY_AGENT_CELL_GANG_FILES_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/runner_protocol/cell_file.h"

namespace assay {

// What KillFormerGangs found.
struct FormerGangs {
  size_t killed = 0;
  // True when this agent can vouch that nothing of former gangs of this folder runs: it was used in
  // this boot and process namespace before, and every process was seen ended. Without that it is
  // another folder's agent, or processes that this one cannot see, that may have left something.
  bool all_ended = false;
};

class GangFiles {
 public:
  explicit GangFiles(std::string state_dir) : state_dir_(std::move(state_dir)) {}

  // Creates the folders and removes the oldest cell files and logs over kMostFiles.
  absl::Status Open();

  // Complete or not there, but not synced: it means nothing after a boot. Returns the path. Now and
  // then removes old files as Open does.
  // `name`: of what runs beside the cell, so that it has files of its own; else empty.
  absl::StatusOr<std::string> WriteCell(const CellFile& cell, const std::string& name = "");
  std::string LogPath(const std::string& attempt, int rank, const std::string& name = "") const;

  // So that a later agent can end what this one leaves behind when it is killed.
  absl::Status RecordPids(const std::string& attempt, const std::vector<uint32_t>& ranks,
                          const std::vector<pid_t>& pids);
  void ForgetPids(const std::string& attempt);

  // Ends every process of the gangs of a former, killed agent: those recorded (pid and start time
  // both right), their sessions, and whatever carries the mark of one of the recorded ranks. Waits
  // for them at most `limit`.
  FormerGangs KillFormerGangs(std::chrono::milliseconds limit);

  // FailedPrecondition with the free size when a gang could not write its files.
  absl::Status CheckDiskSpace() const;

 private:
  void PruneOld();

  std::string state_dir_;
  size_t written_ = 0;  // cell files since the last look at how many there are
};

// Kept of each kind, and up to an eighth more; a file is some KiB, a log at most 8 MiB.
inline constexpr size_t kMostFiles = 2000;
inline constexpr uint64_t kLeastFreeBytes = 64 << 20;

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_GANG_FILES_H_
