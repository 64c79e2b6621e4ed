// OrphanReaper: sees to it that nothing of a child's process tree outlives it.
//
// How a grandchild that left its process group is found: the agent is a subreaper
// (PR_SET_CHILD_SUBREAPER), so every descendant that loses its parent becomes the agent's child, no
// matter how often it forked or called setsid. An orphan belongs to the leader whose id stands in
// its environment (kMarkVariable, inherited unless a program clears it on purpose), else to the
// leader whose session it is in; an orphan that hid both and left the agent's session is killed
// with whichever tree ends next. What is left open: a process that a runner asks another daemon to
// start (systemd-run, a container engine) is no descendant; operators forbid that by a cgroup.
//
// Owner: main. Thread rule: the loop's thread. SIGCHLD must be blocked in every thread: create it
// before others are started. Children that other code starts are left alone as long as they stay in
// the agent's session.
#ifndef ASSAY_AGENT_PROCESS_ORPHAN_REAPER_H_
#define ASSAY_AGENT_PROCESS_ORPHAN_REAPER_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/process/event_loop.h"
#include "agent/process/process_table.h"
#include "agent/process/unique_fd.h"

namespace assay {

// Environment variable with the mark of the tree: "ATTEMPT/RANK".
inline constexpr char kMarkVariable[] = "ASSAY_ATTEMPT";

// Pure part. `marks`: leaders that run or are being swept, with their marks; `mark_of` reads a
// process's mark. Returns every living descendant of `self` that belongs to `leader`, which is
// itself left out. Zombies are not living.
std::vector<pid_t> MembersOfTree(const std::vector<ProcessEntry>& table, pid_t self, pid_t leader,
                                 const std::map<pid_t, std::string>& marks,
                                 const std::function<std::string(pid_t)>& mark_of);

class OrphanReaper {
 public:
  static absl::StatusOr<std::unique_ptr<OrphanReaper>> Create(EventLoop& loop);
  ~OrphanReaper();

  // `leader` was spawned as leader of a session of its own, with `mark` in its environment.
  void Add(pid_t leader, const std::string& mark);

  // Kills what is left of the tree of `leader`, which has been reaped, and calls `done` once:
  // with 0 when all is gone (maybe before Sweep returns), or with the number of processes that
  // survived SIGKILL for `limit` (uninterruptible sleep in a driver).
  void Sweep(pid_t leader, std::chrono::nanoseconds limit, std::function<void(size_t)> done);

 private:
  struct Pending {
    pid_t leader;
    BootTime give_up;
    std::function<void(size_t)> done;
  };

  OrphanReaper(EventLoop& loop, UniqueFd signals);
  void OnSignal();
  void ReapZombies(const std::vector<ProcessEntry>& table);
  void Check();
  void ArmCheck();

  EventLoop& loop_;
  UniqueFd signals_;
  std::map<pid_t, std::string> marks_;
  std::vector<Pending> pending_;
  bool armed_ = false;
  EventLoop::TimerId timer_{};
};

}  // namespace assay

#endif  // ASSAY_AGENT_PROCESS_ORPHAN_REAPER_H_
