// Peer: who is calling, read from gRPC's context in this one place.
//
// Thread rule: plain values, any thread.
#ifndef ASSAY_COORDINATOR_SESSION_PEER_H_
#define ASSAY_COORDINATOR_SESSION_PEER_H_

#include <grpcpp/server_context.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/net/identity.h"

namespace assay {

struct Peer {
  Identity identity;
  std::string address;  // as gRPC writes it: "ipv4:10.1.2.3:40000"
};

class PeerReader {
 public:
  // Without `tls` every peer is the local user, or whom --insecure lets in.
  explicit PeerReader(bool tls = false) : tls_(tls) {}
  // Over TLS: whom the verified certificate names, else nobody.
  Peer Of(const grpc::CallbackServerContext& context) const;

 private:
  bool tls_;
};

// PermissionDenied, naming who and what is needed: only agents' certificates join the fleet, each
// for its own node.
absl::Status CheckIsAgent(const Identity& who);
absl::Status CheckAgentNode(const Identity& who, std::string_view node);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_SESSION_PEER_H_
