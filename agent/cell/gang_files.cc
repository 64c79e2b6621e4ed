#include "agent/cell/gang_files.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "agent/process/orphan_reaper.h"
#include "agent/process/process_table.h"
#include "agent/process/unique_fd.h"
#include "common/clock/clock.h"
#include "common/log/log.h"
#include "common/net/state_dir.h"
#include "common/status/status.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::string ReadText(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The boot, and the process namespace: a container started anew has the host's boot id and sees
// other processes under the same numbers.
std::string KernelId() {
  std::string id = ReadText("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  std::error_code error;
  return id + " " + fs::read_symlink("/proc/self/ns/pid", error).string();
}

// Names sort by time, since ids are ULIDs.
void Prune(const fs::path& dir) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    files.push_back(it->path());
  }
  if (files.size() <= kMostFiles) return;
  std::sort(files.begin(), files.end());
  files.resize(files.size() - kMostFiles);
  for (const fs::path& file : files) fs::remove(file, error);
}

using Leaders = std::set<std::pair<pid_t, uint64_t>>;

// This agent's part of a gang. Another agent of this machine may have other ranks of it.
struct Part {
  std::string attempt;
  Leaders leaders;           // pid and start time
  std::set<uint32_t> ranks;  // none: not known, so whatever carries the attempt's mark

  bool HasMark(std::string_view mark) const {
    if (ranks.empty()) return mark.starts_with(attempt + "/");
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](uint32_t rank) { return mark == fmt::format("{}/{}", attempt, rank); });
  }
};

// Without leaders for a file of another boot. False for a broken file.
bool ReadPart(const fs::path& file, Part* part) {
  try {
    const nlohmann::json json = nlohmann::json::parse(ReadText(file));
    if (json.at("boot_id").get<std::string>() != KernelId()) return true;
    for (const auto& item : json.at("pids")) {
      part->leaders.emplace(item.at(0).get<pid_t>(), item.at(1).get<uint64_t>());
    }
    if (json.contains("ranks")) part->ranks = json.at("ranks").get<std::set<uint32_t>>();
  } catch (const std::exception& error) {
    spdlog::warn("cannot read {}: {}", file.string(), error.what());
    return false;
  }
  return true;
}

struct FormerProcesses {
  std::vector<pid_t> members;
  // A process in the session of a leader that is gone, without a mark: most likely the gang's, but
  // its number may have been given to another since, so it is not killed.
  bool doubtful = false;
};

// Living processes of one former gang.
FormerProcesses FindFormer(const Part& part) {
  const Leaders& leaders = part.leaders;
  const std::vector<ProcessEntry> table = ReadProcessTable();
  FormerProcesses found;
  for (const ProcessEntry& entry : table) {
    if (!entry.Living() || entry.pid == ::getpid()) continue;
    const bool leader = leaders.contains({entry.pid, entry.start_ticks});
    // A session id stays taken while a process is in it, so with the leader's start time it is
    // sure; without the leader the mark has to say it.
    const bool in_session = std::any_of(table.begin(), table.end(), [&](const ProcessEntry& e) {
      return e.pid == entry.session && leaders.contains({e.pid, e.start_ticks});
    });
    const std::string mark = EnvironmentOf(entry.pid, kMarkVariable).value_or("");
    if (leader || in_session || part.HasMark(mark)) {
      found.members.push_back(entry.pid);
    } else if (mark.empty()) {
      found.doubtful |= std::any_of(leaders.begin(), leaders.end(), [&](const auto& recorded) {
        return recorded.first == entry.session && recorded.second <= entry.start_ticks;
      });
    }
  }
  return found;
}

void WaitGone(pid_t pid, BootTime deadline) {
  const UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) return;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - BootClock::now());
  pollfd item{fd.get(), POLLIN, 0};
  ::poll(&item, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
}

std::string FileStem(const std::string& attempt, const std::string& name) {
  return name.empty() ? attempt : attempt + "." + name;
}

}  // namespace

absl::Status GangFiles::Open() {
  for (const char* name : {"cells", "logs", "gangs"}) {
    ASSAY_RETURN_IF_ERROR(CreateStateDir(state_dir_ + "/" + name));
  }
  PruneOld();
  return absl::OkStatus();
}

void GangFiles::PruneOld() {
  Prune(state_dir_ + "/cells");
  Prune(state_dir_ + "/logs");
  written_ = 0;
}

absl::StatusOr<std::string> GangFiles::WriteCell(const CellFile& cell, const std::string& name) {
  // An agent may live for months: not only when it starts.
  if (++written_ > kMostFiles / 8) PruneOld();
  std::string path =
      fmt::format("{}/cells/{}.rank{}.json", state_dir_, FileStem(cell.attempt, name), cell.rank);
  // Replace: a byte that is not UTF-8 must not throw.
  const std::string text =
      CellFileToJson(cell).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, text + "\n", Durability::kProcess));
  return path;
}

std::string GangFiles::LogPath(const std::string& attempt, int rank,
                               const std::string& name) const {
  return fmt::format("{}/logs/{}.rank{}.log", state_dir_, FileStem(attempt, name), rank);
}

absl::Status GangFiles::RecordPids(const std::string& attempt, const std::vector<uint32_t>& ranks,
                                   const std::vector<pid_t>& pids) {
  nlohmann::json list = nlohmann::json::array();
  for (const pid_t pid : pids) {
    if (const auto entry = ReadProcess(pid)) list.push_back({pid, entry->start_ticks});
  }
  // Means nothing after a boot.
  return WriteFileAtomically(
      fmt::format("{}/gangs/{}.json", state_dir_, attempt),
      nlohmann::json{{"boot_id", KernelId()}, {"pids", list}, {"ranks", ranks}}.dump(),
      Durability::kProcess);
}

void GangFiles::ForgetPids(const std::string& attempt) {
  std::error_code ignored;
  fs::remove(fmt::format("{}/gangs/{}.json", state_dir_, attempt), ignored);
}

FormerGangs GangFiles::KillFormerGangs(std::chrono::milliseconds limit) {
  const BootTime deadline = BootClock::now() + limit;
  const std::string kernel_path = state_dir_ + "/kernel";
  FormerGangs former;
  former.all_ended = ReadText(kernel_path) == KernelId();
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator it(state_dir_ + "/gangs", error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".json") files.push_back(it->path());
  }
  if (error) former.all_ended = false;
  const bool same_kernel = former.all_ended;
  for (const fs::path& file : files) {
    Part part{file.stem().string(), {}, {}};
    const bool recorded = ReadPart(file, &part);
    // A process may fork between the look and the kill: look until there is nothing.
    FormerProcesses found = FindFormer(part);
    for (; !found.members.empty() && BootClock::now() < deadline; found = FindFormer(part)) {
      for (const pid_t pid : found.members) ::kill(pid, SIGKILL);
      for (const pid_t pid : found.members) WaitGone(pid, deadline);
      former.killed += found.members.size();
    }
    // A gang that may live is looked for again by the next agent, which must not vouch for it
    // either; that of another boot is surely gone.
    const bool ended = recorded && found.members.empty() && !found.doubtful;
    if (!ended) former.all_ended = false;
    if (ended || !same_kernel) ForgetPids(part.attempt);
  }
  if (!WriteFileAtomically(kernel_path, KernelId()).ok()) former.all_ended = false;
  return former;
}

absl::Status GangFiles::CheckDiskSpace() const {
  struct statvfs info;
  if (::statvfs(state_dir_.c_str(), &info) != 0)
    return ErrnoStatus(errno, "cannot look at " + state_dir_);
  const uint64_t free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  if (free_bytes >= kLeastFreeBytes) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format("{} has {} MiB free, {} are needed", state_dir_,
                                                   free_bytes >> 20, kLeastFreeBytes >> 20));
}

}  // namespace assay
