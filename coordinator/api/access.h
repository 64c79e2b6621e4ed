// Access: may this caller do this, and the line in the log that says who did it.
//
// Thread rule: a plain value, any thread.
#ifndef ASSAY_COORDINATOR_API_ACCESS_H_
#define ASSAY_COORDINATOR_API_ACCESS_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "coordinator/session/peer.h"
#include "coordinator/store/result_store.h"

namespace assay {

class Access {
 public:
  // `action` is a verb for sentences and the log: "cancel".
  Access(const PeerReader& peers, const grpc::CallbackServerContext& context, const char* action)
      : peer_(peers.Of(context)), good_(peers.CheckGood(peer_)), action_(action) {}

  // PermissionDenied, logged, with one sentence that names who, what and the role that is needed;
  // Unauthenticated where the certificate of the connection has ended since.
  absl::Status Check(Role needed) const;
  // The same for a call with one answer, which it ends when it returns false.
  bool Allow(Role needed, grpc::ServerUnaryReactor* call) const;
  // Runs of others are for admins. `run` is a full id; `reader` is the work thread's.
  absl::Status CheckOwner(ResultReader& reader, const std::string& run) const;

  // Whoever may submit may let others go first; to go before others is for admins.
  absl::Status CheckPriority(int64_t priority) const;

  // One line for an action that was carried out, or refused by the state. `kind` says what `id` is
  // of.
  void Log(const std::string& id, const absl::Status& status, const char* kind = "run") const;

  // By certificate; empty without one.
  std::string user() const {
    return peer_.identity.kind == Identity::Kind::kUser ? peer_.identity.name : "";
  }

 private:
  absl::Status Refuse(const std::string& sentence) const;

  Peer peer_;
  absl::Status good_;
  const char* action_;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_API_ACCESS_H_
