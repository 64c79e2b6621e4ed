// The state directory of one user or one test: where it is, who holds it, where its coordinator
// listens.
//
//   DIR/lock            flock of the coordinator, for its life
//   DIR/endpoint.json   {"address":"unix:/...","pid":N,"version":"0.1.0"} while it listens
//   DIR/results.db      the store
//   DIR/agent/          state of the local agent
//
// Thread rule: any thread; a StateLock belongs to one owner.
#ifndef ASSAY_COMMON_NET_STATE_DIR_H_
#define ASSAY_COMMON_NET_STATE_DIR_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

// `flag` where not empty, else $ASSAY_STATE, else $XDG_STATE_HOME/assay, else
// $HOME/.local/state/assay; made absolute, without creating it. FailedPrecondition where none of
// them is set.
absl::StatusOr<std::string> ResolveStateDir(const std::string& flag);

// Creates `dir` (and its parents) with mode 0700 where it is missing; an existing one is left as it
// is. The error names the folder and what the system said.
absl::Status CreateStateDir(const std::string& dir);

// Folder for sockets: creates it with mode 0700, or checks that it is a real folder (no link) of
// this user which nobody else may enter. PermissionDenied otherwise.
absl::Status EnsurePrivateDir(const std::string& dir);

// Socket of the local coordinator of `state_dir` (absolute): in
// $XDG_RUNTIME_DIR/assay-<12 hex of SHA-256 of state_dir>/, or /tmp/assay-<uid>/<12 hex>/ where
// that is unset, not ours or too long. Creates the private folders. Returns the path of c.sock,
// under 108 bytes.
absl::StatusOr<std::string> LocalSocketPath(const std::string& state_dir);

// flock on DIR/lock, held until destruction; the kernel lets go of it when the process dies.
class StateLock {
 public:
  // AlreadyExists with one sentence (folder, pid of the holder where known) when another process
  // holds it; ErrnoStatus where the file cannot be opened.
  static absl::StatusOr<StateLock> Acquire(const std::string& state_dir);
  // True while some process holds the lock; false too where there is no lock file.
  static bool IsHeld(const std::string& state_dir);

  StateLock(StateLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  StateLock& operator=(StateLock&& other) noexcept;
  ~StateLock();

 private:
  explicit StateLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// kDisk survives a loss of power; kProcess only the death of every process, and spares the two
// syncs (milliseconds each) for what means nothing after a boot.
enum class Durability { kProcess, kDisk };

// Writes `text` to `path` so that a reader or a crash sees the old or the new content, never a
// part: temporary file, fsync, rename, fsync of the folder.
absl::Status WriteFileAtomically(const std::string& path, const std::string& text,
                                 Durability durability = Durability::kDisk);

struct Endpoint {
  std::string address;
  int64_t pid = 0;
  std::string version;
};

// DIR/endpoint.json. Read: NotFound where there is none; DataLoss where it is not such an object.
// Remove: only the file that names `pid`; a missing one is fine.
absl::Status WriteEndpoint(const std::string& state_dir, const Endpoint& endpoint);
absl::StatusOr<Endpoint> ReadEndpoint(const std::string& state_dir);
void RemoveEndpoint(const std::string& state_dir, int64_t pid);

}  // namespace assay

#endif  // ASSAY_COMMON_NET_STATE_DIR_H_
