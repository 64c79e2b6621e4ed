#include "agent/process/orphan_reaper.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <set>

#include "common/log/log.h"
#include "common/status/status.h"

namespace assay {
namespace {

// A sweep waits for SIGCHLD; this only covers an exit whose signal went elsewhere.
constexpr std::chrono::milliseconds kCheckAgain{100};

// A look at one child without reading the table of processes, which takes milliseconds where many
// run.
enum class Children { kNone, kAllRun, kZombie };
Children LookAtChildren(pid_t* zombie) {
  siginfo_t info{};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return errno == ECHILD ? Children::kNone : Children::kAllRun;
  }
  *zombie = info.si_pid;
  return info.si_pid == 0 ? Children::kAllRun : Children::kZombie;
}

}  // namespace

std::vector<pid_t> MembersOfTree(const std::vector<ProcessEntry>& table, pid_t self, pid_t leader,
                                 const std::map<pid_t, std::string>& marks,
                                 const std::function<std::string(pid_t)>& mark_of) {
  std::multimap<pid_t, const ProcessEntry*> children;
  pid_t own_session = 0;
  for (const ProcessEntry& entry : table) {
    children.emplace(entry.parent, &entry);
    if (entry.pid == self) own_session = entry.session;
  }
  const auto owner_of = [&](const ProcessEntry& orphan) -> pid_t {
    const std::string found = mark_of(orphan.pid);
    for (const auto& [pid, text] : marks) {
      if (!found.empty() && found == text) return pid;
    }
    if (marks.contains(orphan.session)) return orphan.session;
    return orphan.session == own_session ? 0 : leader;
  };
  std::vector<pid_t> stack;
  const auto roots = children.equal_range(self);
  for (auto it = roots.first; it != roots.second; ++it) {
    const ProcessEntry& root = *it->second;
    if (root.pid == leader) {
      stack.push_back(root.pid);
      continue;
    }
    if (marks.contains(root.pid)) continue;
    if (owner_of(root) == leader) stack.push_back(root.pid);
  }
  std::set<pid_t> seen;
  std::vector<pid_t> members;
  std::set<pid_t> living;
  for (const ProcessEntry& entry : table) {
    if (entry.Living()) living.insert(entry.pid);
  }
  while (!stack.empty()) {
    const pid_t pid = stack.back();
    stack.pop_back();
    if (!seen.insert(pid).second) continue;
    if (pid != leader && living.contains(pid)) members.push_back(pid);
    const auto below = children.equal_range(pid);
    for (auto it = below.first; it != below.second; ++it) stack.push_back(it->second->pid);
  }
  return members;
}

absl::StatusOr<std::unique_ptr<OrphanReaper>> OrphanReaper::Create(EventLoop& loop) {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
    return ErrnoStatus(errno, "cannot become the subreaper of the runners");
  }
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  UniqueFd signals(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals) return ErrnoStatus(errno, "cannot create a signal descriptor");
  std::unique_ptr<OrphanReaper> reaper(new OrphanReaper(loop, std::move(signals)));
  OrphanReaper* raw = reaper.get();
  ASSAY_RETURN_IF_ERROR(
      loop.Watch(raw->signals_.get(), EPOLLIN, [raw](uint32_t) { raw->OnSignal(); }));
  return reaper;
}

OrphanReaper::OrphanReaper(EventLoop& loop, UniqueFd signals)
    : loop_(loop), signals_(std::move(signals)) {}

OrphanReaper::~OrphanReaper() {
  loop_.Unwatch(signals_.get());
  if (armed_) loop_.Cancel(timer_);
}

void OrphanReaper::Add(pid_t leader, const std::string& mark) { marks_[leader] = mark; }

void OrphanReaper::Sweep(pid_t leader, std::chrono::nanoseconds limit,
                         std::function<void(size_t)> done) {
  pending_.push_back({leader, BootClock::now() + limit, std::move(done)});
  Check();
}

void OrphanReaper::OnSignal() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
  }
  if (!pending_.empty()) return Check();
  pid_t zombie = 0;
  // A leader is reaped by its ChildProcess, whose sweep looks at everything.
  if (LookAtChildren(&zombie) == Children::kZombie && !marks_.contains(zombie)) {
    ReapZombies(ReadProcessTable());
  }
}

void OrphanReaper::ReapZombies(const std::vector<ProcessEntry>& table) {
  const pid_t self = ::getpid();
  const pid_t own_session = ::getsid(0);
  for (const ProcessEntry& entry : table) {
    // A leader's status belongs to its ChildProcess; one in our session to whoever started it.
    if (entry.parent != self || entry.state != 'Z' || marks_.contains(entry.pid)) continue;
    if (entry.session == own_session) continue;
    ::waitpid(entry.pid, nullptr, WNOHANG);
  }
}

void OrphanReaper::Check() {
  // Without any child there is no descendant either: an orphan becomes ours at once.
  pid_t zombie = 0;
  const bool childless = LookAtChildren(&zombie) == Children::kNone;
  const std::vector<ProcessEntry> table =
      childless ? std::vector<ProcessEntry>() : ReadProcessTable();
  ReapZombies(table);
  std::vector<std::pair<std::function<void(size_t)>, size_t>> finished;
  for (auto it = pending_.begin(); it != pending_.end();) {
    const std::vector<pid_t> members =
        MembersOfTree(table, ::getpid(), it->leader, marks_,
                      [](pid_t pid) { return EnvironmentOf(pid, kMarkVariable).value_or(""); });
    for (const pid_t pid : members) ::kill(pid, SIGKILL);
    if (!members.empty() && BootClock::now() < it->give_up) {
      ++it;
      continue;
    }
    if (!members.empty()) {
      spdlog::warn("process {} and {} more survived SIGKILL; they are left behind", members.front(),
                   members.size() - 1);
    }
    marks_.erase(it->leader);
    finished.emplace_back(std::move(it->done), members.size());
    it = pending_.erase(it);
  }
  ArmCheck();
  for (auto& [done, left] : finished) done(left);
}

void OrphanReaper::ArmCheck() {
  if (armed_ || pending_.empty()) return;
  armed_ = true;
  timer_ = loop_.RunAt(BootClock::now() + kCheckAgain, [this] {
    armed_ = false;
    Check();
  });
}

}  // namespace assay
