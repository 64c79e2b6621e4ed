// The part of connection.h that starts a program and reads its log.
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "cli/connection.h"
#include "common/net/sibling.h"
#include "common/status/status.h"

namespace assay::cli {
namespace {

// A log this long is set aside as coordinator.log.1 before the next start.
constexpr int64_t kMostLogBytes = int64_t{4} << 20;
constexpr int kMostTailLines = 10;
constexpr int64_t kMostTailBytes = 4096;

std::string LogPath(const std::string& state_dir) { return state_dir + "/coordinator.log"; }

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class SpawnAttributes {
 public:
  SpawnAttributes() {
    posix_spawnattr_init(&attributes_);
    // A session of its own: the terminal's Ctrl-C and hang-up are not for it. Signals as a fresh
    // program has them, whatever this command ignores or handles.
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  posix_spawnattr_t* get() { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

absl::StatusOr<StartedProgram> StartLocalCoordinator(const std::string& state_dir) {
  const auto program = SiblingProgram("assay-coordinator");
  if (!program.ok()) {
    return absl::UnavailableError("no coordinator can be started: " + Message(program.status()));
  }
  const std::string log_path = LogPath(state_dir);
  struct stat info = {};
  if (stat(log_path.c_str(), &info) == 0 && info.st_size > kMostLogBytes) {
    (void)rename(log_path.c_str(), (log_path + ".1").c_str());
  }
  StartedProgram started;
  // O_NONBLOCK: a pipe of that name that nobody reads is an error and no endless wait.
  const int log =
      open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
  if (log < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", log_path));
  if (fstat(log, &info) == 0) started.log_offset = info.st_size;

  SpawnActions actions;
  posix_spawn_file_actions_addopen(actions.get(), 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), log, 1);
  posix_spawn_file_actions_adddup2(actions.get(), log, 2);
  // What this command inherited must not stay open for as long as the coordinator lives: a script
  // that reads our output to its end would wait for it.
  posix_spawn_file_actions_addclosefrom_np(actions.get(), 3);
  SpawnAttributes attributes;
  std::vector<std::string> words = {*program, "--local", "--state", state_dir};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int error = posix_spawn(&started.pid, program->c_str(), actions.get(), attributes.get(),
                                argv.data(), environ);
  close(log);
  if (error != 0) {
    return absl::UnavailableError(
        Message(ErrnoStatus(error, fmt::format("cannot start {}", *program))));
  }
  return started;
}

std::string LogTail(const std::string& state_dir, int64_t offset) {
  const int log = open(LogPath(state_dir).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (log < 0) return "";
  struct stat info = {};
  std::string text;
  if (fstat(log, &info) == 0 && info.st_size > offset) {
    const int64_t from = std::max(offset, info.st_size - kMostTailBytes);
    text.resize(static_cast<size_t>(info.st_size - from));
    const ssize_t got = pread(log, text.data(), text.size(), from);
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  }
  close(log);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  size_t begin = text.size();
  for (int lines = 0; begin > 0; --begin) {
    if (text[begin - 1] == '\n' && ++lines == kMostTailLines) break;
  }
  return text.substr(begin);
}

}  // namespace assay::cli
