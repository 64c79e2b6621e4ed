// State directory, shared memory and device locks.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "agent/doctor/checks.h"
#include "agent/doctor/findings.h"
#include "common/text/number_format.h"
#include "common/text/shell_word.h"

namespace assay {
namespace {

constexpr uint64_t kLowFreeFiles = 1000;

std::string BytesText(uint64_t bytes) {
  return HumanBytes(static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX)));
}

// Locks and shared memory of SQLite's WAL do not hold over a network ("WAL does not work over a
// network filesystem", https://www.sqlite.org/wal.html).
bool IsNetworkType(const std::string& type) {
  constexpr std::array<std::string_view, 20> kNetwork = {
      "nfs",        "nfs4",  "cifs",           "smb3",           "smbfs",
      "afs",        "ceph",  "lustre",         "gpfs",           "beegfs",
      "glusterfs",  "9p",    "ocfs2",          "gfs2",           "pvfs2",
      "fuse.sshfs", "ncpfs", "fuse.glusterfs", "fuse.ceph-fuse", "fuse.s3fs"};
  return std::find(kNetwork.begin(), kNetwork.end(), type) != kNetwork.end();
}

DoctorCheck CheckStateFolder(const FolderFacts& state) {
  const std::string name = "state-dir";
  if (state.path.empty()) return Bad(name, state.error, "export ASSAY_STATE=DIR");
  if (!state.error.empty()) {
    return Bad(
        name, fmt::format("{} cannot be written: {}", state.path, state.error),
        fmt::format("ls -ld {}; df -h {}", ShellWord(state.nearest), ShellWord(state.nearest)));
  }
  const std::string where =
      fmt::format("{} ({}{})", state.path, state.file_type.empty() ? "?" : state.file_type,
                  state.exists ? "" : ", not made yet");
  if (IsNetworkType(state.file_type)) {
    return Bad(name, where + " is on a network file system, on which SQLite loses results",
               "export ASSAY_STATE=/var/tmp/assay");
  }
  if (state.file_type.starts_with("fuse")) {
    return Warn(name, where + " is on a FUSE file system, which may not keep SQLite's locks",
                "export ASSAY_STATE=/var/tmp/assay");
  }
  if (state.file_type == "tmpfs" || state.file_type == "ramfs") {
    return Warn(name, where + " is in memory: results are gone after a reboot",
                "export ASSAY_STATE=/var/tmp/assay");
  }
  return Good(name, where + " can be written");
}

DoctorCheck CheckDisk(const FolderFacts& state) {
  if (!state.free_bytes) return NotKnown("disk", "free space is not known");
  const std::string text = BytesText(*state.free_bytes) + " free for the state directory";
  const std::string look = "df -h " + ShellWord(state.nearest);
  if (*state.free_bytes < kBadFreeBytes) {
    return Bad("disk", fmt::format("{}, less than {}", text, BytesText(kBadFreeBytes)), look);
  }
  if (state.free_files && *state.free_files == 0) {
    return Bad("disk", text + ", and no file can be made: inodes are used up",
               "df -i " + ShellWord(state.nearest));
  }
  if (*state.free_bytes < kLowFreeBytes) {
    return Warn("disk", fmt::format("{}, less than {}", text, BytesText(kLowFreeBytes)), look);
  }
  if (state.free_files && *state.free_files < kLowFreeFiles) {
    return Warn("disk", fmt::format("{}, and room for {} files", text, *state.free_files),
                "df -i " + ShellWord(state.nearest));
  }
  return Good("disk", text);
}

DoctorCheck CheckShm(const Facts& facts) {
  const std::string name = "shared-memory";
  const auto gpus = std::count_if(facts.devices.begin(), facts.devices.end(), [](const Device& d) {
    return d.kind != "cpu" && d.usable && !d.simulated;
  });
  const std::string larger =
      fmt::format("sudo mount -o remount,size=8G {}  # container: --shm-size=8g", facts.shm_path);
  if (!facts.shm_bytes) {
    const std::string text = facts.shm_path + " is missing";
    return gpus > 1 ? Bad(name, text + ": NCCL cannot start", larger) : Warn(name, text, larger);
  }
  const std::string text =
      fmt::format("{} has {}, {} of it free", facts.shm_path, BytesText(*facts.shm_bytes),
                  BytesText(facts.shm_free_bytes.value_or(*facts.shm_bytes)));
  const uint64_t room = std::min(*facts.shm_bytes, facts.shm_free_bytes.value_or(UINT64_MAX));
  if (room < kBadShmBytes && gpus > 1) {
    return Bad(name,
               fmt::format("{}: too little for NCCL between {} GPUs ({} at least)", text, gpus,
                           BytesText(kBadShmBytes)),
               larger);
  }
  if (room < kLowShmBytes) {
    return Warn(name, fmt::format("{}: NCCL between GPUs wants {}", text, BytesText(kLowShmBytes)),
                larger);
  }
  return Good(name, text);
}

DoctorCheck CheckLocks(const LockFolderFacts& locks) {
  if (locks.error.empty()) return Good("device-locks", locks.path + " can be used");
  return Bad("device-locks",
             fmt::format("no device can be locked, so none is measured: {}", locks.error),
             fmt::format("sudo mkdir -p {0} && sudo chmod 1777 {0}", ShellWord(locks.path)));
}

}  // namespace

void CheckStorage(const Facts& facts, std::vector<DoctorCheck>& checks) {
  checks.push_back(CheckStateFolder(facts.state));
  checks.push_back(CheckDisk(facts.state));
  checks.push_back(CheckShm(facts));
  checks.push_back(CheckLocks(facts.locks));
}

}  // namespace assay
