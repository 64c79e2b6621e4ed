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

std::string BootId() {
  std::string id = ReadText("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
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

// pid and start time of each recorded leader; nothing for a file of another boot or a broken one.
std::set<std::pair<pid_t, uint64_t>> RecordedPids(const fs::path& file) {
  std::set<std::pair<pid_t, uint64_t>> pids;
  try {
    const nlohmann::json json = nlohmann::json::parse(ReadText(file));
    if (json.at("boot_id").get<std::string>() != BootId()) return {};
    for (const auto& item : json.at("pids")) {
      pids.emplace(item.at(0).get<pid_t>(), item.at(1).get<uint64_t>());
    }
  } catch (const std::exception& error) {
    spdlog::warn("cannot read {}: {}", file.string(), error.what());
  }
  return pids;
}

// Living processes of one former gang.
std::vector<pid_t> FormerMembers(const std::string& attempt,
                                 const std::set<std::pair<pid_t, uint64_t>>& leaders) {
  const std::vector<ProcessEntry> table = ReadProcessTable();
  std::vector<pid_t> members;
  for (const ProcessEntry& entry : table) {
    if (entry.state == 'Z' || entry.pid == ::getpid()) continue;
    const bool leader = leaders.contains({entry.pid, entry.start_ticks});
    // A session id stays taken while a process is in it, so with the leader's start time it is
    // sure; without the leader the mark has to say it.
    const bool in_session = std::any_of(table.begin(), table.end(), [&](const ProcessEntry& e) {
      return e.pid == entry.session && leaders.contains({e.pid, e.start_ticks});
    });
    const std::string mark = EnvironmentOf(entry.pid, kMarkVariable).value_or("");
    if (leader || in_session || mark.starts_with(attempt + "/")) members.push_back(entry.pid);
  }
  return members;
}

void WaitGone(pid_t pid, BootTime deadline) {
  const UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) return;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - BootClock::now());
  pollfd item{fd.get(), POLLIN, 0};
  ::poll(&item, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
}

}  // namespace

absl::Status GangFiles::Open() {
  for (const char* name : {"cells", "logs", "gangs"}) {
    const std::string dir = state_dir_ + "/" + name;
    ASSAY_RETURN_IF_ERROR(CreateStateDir(dir));
    if (std::string_view(name) != "gangs") Prune(dir);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> GangFiles::WriteCell(const CellFile& cell) {
  const std::string path =
      fmt::format("{}/cells/{}.rank{}.json", state_dir_, cell.attempt, cell.rank);
  // Replace: a byte that is not UTF-8 must not throw.
  const std::string text =
      CellFileToJson(cell).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, text + "\n"));
  return path;
}

std::string GangFiles::LogPath(const std::string& attempt, int rank) const {
  return fmt::format("{}/logs/{}.rank{}.log", state_dir_, attempt, rank);
}

absl::Status GangFiles::RecordPids(const std::string& attempt, const std::vector<pid_t>& pids) {
  nlohmann::json list = nlohmann::json::array();
  for (const pid_t pid : pids) {
    if (const auto entry = ReadProcess(pid)) list.push_back({pid, entry->start_ticks});
  }
  return WriteFileAtomically(fmt::format("{}/gangs/{}.json", state_dir_, attempt),
                             nlohmann::json{{"boot_id", BootId()}, {"pids", list}}.dump());
}

void GangFiles::ForgetPids(const std::string& attempt) {
  std::error_code ignored;
  fs::remove(fmt::format("{}/gangs/{}.json", state_dir_, attempt), ignored);
}

size_t GangFiles::KillFormerGangs(std::chrono::milliseconds limit) {
  const BootTime deadline = BootClock::now() + limit;
  size_t killed = 0;
  std::error_code error;
  for (fs::directory_iterator it(state_dir_ + "/gangs", error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() != ".json") continue;
    const std::string attempt = it->path().stem().string();
    const auto leaders = RecordedPids(it->path());
    // A process may fork between the look and the kill: look until there is nothing.
    for (std::vector<pid_t> members = FormerMembers(attempt, leaders);
         !members.empty() && BootClock::now() < deadline;
         members = FormerMembers(attempt, leaders)) {
      for (const pid_t pid : members) ::kill(pid, SIGKILL);
      for (const pid_t pid : members) WaitGone(pid, deadline);
      killed += members.size();
    }
    ForgetPids(attempt);
  }
  return killed;
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
