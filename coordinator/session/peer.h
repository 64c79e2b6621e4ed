// Peer: who is calling, read from gRPC's context in this one place.
//
// TLS looks at a certificate's time once, in the handshake, and a connection may be up for months.
// So that a certificate that was given for a day is good for a day, its end is looked at here
// again.
//
// Thread rule: plain values, any thread.
#ifndef ASSAY_COORDINATOR_SESSION_PEER_H_
#define ASSAY_COORDINATOR_SESSION_PEER_H_

#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/clock/clock.h"
#include "common/net/identity.h"

namespace assay {

struct Peer {
  Identity identity;
  std::string address;  // as gRPC writes it: "ipv4:10.1.2.3:40000"
  // The end of its certificate by the boot clock, so that a later step of the wall clock ends no
  // session; none without a certificate. And what is said then.
  std::optional<BootTime> good_until;
  std::string when_ended;
};

class PeerReader {
 public:
  // Without `tls` every peer is the local user, or whom --insecure lets in. `clock` outlives this.
  PeerReader(bool tls, const Clock& clock) : tls_(tls), clock_(&clock) {}
  // Over TLS: whom the verified certificate names, else nobody.
  Peer Of(const grpc::CallbackServerContext& context) const;
  // Unauthenticated once its certificate has ended, with what to do.
  absl::Status CheckGood(const Peer& peer) const;

 private:
  bool tls_;
  const Clock* clock_;
};

// PermissionDenied, naming who and what is needed: only agents' certificates join the fleet, each
// for its own node.
absl::Status CheckIsAgent(const Identity& who);
absl::Status CheckAgentNode(const Identity& who, std::string_view node);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_SESSION_PEER_H_
