// Why a connection did not come about: one short handshake of our own, since gRPC's words for it
// cannot be read.
//
// Thread rule: any thread that may block, for at most kProbeLimit (and the name's look-up).
#ifndef ASSAY_COMMON_CERTS_TLS_PROBE_H_
#define ASSAY_COMMON_CERTS_TLS_PROBE_H_

#include <chrono>

#include "absl/status/status.h"
#include "common/net/address.h"
#include "common/net/identity.h"
#include "common/net/transport.h"

namespace assay {

inline constexpr std::chrono::milliseconds kProbeLimit{2'000};

// OK where nothing is wrong that TLS could explain: nobody listens, the network is away, or all is
// well by now. Else FailedPrecondition with one sentence: our own files (CheckTlsFiles), the peer
// speaks plain text, or TLS where we do not; its certificate is expired, not yet valid, for another
// name, or signed by another authority; or it did not take our certificate. `kind` is whose
// certificate ours must be.
absl::Status ExplainConnection(const Address& address, const Transport& transport,
                               Identity::Kind kind);

}  // namespace assay

#endif  // ASSAY_COMMON_CERTS_TLS_PROBE_H_
