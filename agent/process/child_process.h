// ChildProcess: one child and its whole process tree, as a passive object that an EventLoop drives.
//
// The child leads a session and a process group of its own, gets SIGKILL when the thread that
// spawned it ends (PR_SET_PDEATHSIG: so spawn from the one loop thread, which lives as long as the
// program), and inherits nothing but what the spec lists:
//   0 /dev/null, 1 and 2 one pipe to here, 3 records to here, 4 lifeline from here, 5.. passed.
//
// Owner: who spawned it. Thread rule: the loop's thread. Callbacks come from the loop, never from
// within Spawn; an observer may destroy the child in OnGone only.
#ifndef ASSAY_AGENT_PROCESS_CHILD_PROCESS_H_
#define ASSAY_AGENT_PROCESS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/process/capped_log_file.h"
#include "agent/process/event_loop.h"
#include "agent/process/orphan_reaper.h"
#include "agent/process/unique_fd.h"
#include "common/text/tail_buffer.h"

namespace assay {

inline constexpr int kRecordsFd = 3;
inline constexpr int kLifelineFd = 4;
inline constexpr int kFirstPassedFd = 5;

inline constexpr size_t kLogTailBytes = 16 << 10;
inline constexpr size_t kLogFileBytes = 8 << 20;

// How it ended. A code and a signal are never both set.
struct ChildExit {
  int code = -1;   // -1 where a signal ended it
  int signal = 0;  // 0 where it exited
  uint64_t peak_resident_bytes = 0;
  double user_seconds = 0;
  double system_seconds = 0;
  size_t survivors = 0;  // of its tree, which not even SIGKILL ended
};

class ChildObserver {
 public:
  virtual ~ChildObserver() = default;
  virtual void OnRecords(std::string_view bytes) = 0;
  virtual void OnRecordsClosed() = 0;  // end of file while the child may still run
  // The child is reaped, all it wrote was delivered, its tree is gone (but `survivors`). Last call.
  virtual void OnGone(const ChildExit& exit) = 0;
};

struct ChildSpec {
  std::string program;                             // absolute
  std::vector<std::string> arguments;              // without the program's name
  std::map<std::string, std::string> environment;  // all of it; nothing is inherited
  std::string mark;                                // goes into the environment as kMarkVariable
  std::string log_path;                            // empty: no log file
  std::vector<int> cpus;        // processors that it may use; empty: as this process
  std::vector<int> passed_fds;  // become 5, 6, ...; -1 leaves that number closed. Stay the caller's
  std::chrono::nanoseconds lifeline_interval{0};  // zero: no lifeline bytes (descriptor 4 is open)
};

class ChildProcess {
 public:
  // NotFound, PermissionDenied or what execve said, with the program's name. `observer` must
  // outlive the child.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Spawn(EventLoop& loop, OrphanReaper& reaper,
                                                             const ChildSpec& spec,
                                                             ChildObserver& observer);
  // A child that still runs gets SIGKILL, with its group, and is reaped here.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  std::string LogTail() const { return tail_.Text(); }
  // SIGTERM (and SIGCONT, since a stopped process acts on nothing else) to the group; after `grace`
  // SIGKILL. A second call with a shorter grace shortens it.
  void Stop(std::chrono::nanoseconds grace);

 private:
  ChildProcess(EventLoop& loop, OrphanReaper& reaper, ChildObserver& observer);

  absl::Status WatchAll();
  void OnOutput(size_t budget);
  void OnRecordBytes(size_t budget);
  void CloseRecords(bool tell);
  void BeatLifeline();
  void OnExit();
  void Signal(int signal);

  EventLoop& loop_;
  OrphanReaper& reaper_;
  ChildObserver& observer_;
  pid_t pid_ = -1;
  bool reaped_ = false;
  ChildExit exit_;
  UniqueFd pidfd_;
  UniqueFd output_;
  UniqueFd records_;
  UniqueFd lifeline_;
  TailBuffer tail_{kLogTailBytes};
  CappedLogFile log_;
  std::chrono::nanoseconds lifeline_interval_{0};
  EventLoop::TimerId beat_timer_{};
  EventLoop::TimerId kill_timer_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace assay

#endif  // ASSAY_AGENT_PROCESS_CHILD_PROCESS_H_
