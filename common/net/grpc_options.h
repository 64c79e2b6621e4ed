// Every gRPC option of Assay, in one file; nothing else sets one.
//
// Thread rule: any thread.
#ifndef ASSAY_COMMON_NET_GRPC_OPTIONS_H_
#define ASSAY_COMMON_NET_GRPC_OPTIONS_H_

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/address.h"
#include "common/net/transport.h"

namespace assay {

// Both sides, both directions. Above any message we send: matrices are at most 1 MiB, results and
// exports are paged, an inventory or a report is capped by its writer and its reader.
inline constexpr int kMaxMessageBytes = 16 << 20;

// What a sender keeps a single message under, so that framing and field tags still fit.
inline constexpr int kMessageBudgetBytes = 8 << 20;

inline constexpr std::chrono::seconds kAgentKeepaliveInterval{60};
inline constexpr std::chrono::seconds kAgentKeepaliveTimeout{20};
// The least interval of pings that a server accepts; gRPC's own default of 5 min answers a
// keepalive of 60 s with GOAWAY too_many_pings.
inline constexpr std::chrono::seconds kServerLeastPingInterval{30};

// One try of a connection: TCP, TLS and HTTP/2 are four round trips, and each lost packet among the
// first costs a second and more. Where nobody listens a try ends at once all the same.
inline constexpr std::chrono::seconds kConnectLimit{10};

// How often a program looks whether its TLS files were renewed; new connections use the new ones.
inline constexpr std::chrono::seconds kTlsRefresh{5};

enum class ChannelUse {
  kAgent,  // a session for hours: keepalive pings, reconnects with jitter
  kUser,   // a command for seconds: fails fast where nobody listens
};

// A channel to `address`; does not connect yet. With TLS it shows our certificate, and the peer's
// must be signed by our authority and be good for the address's host. InvalidArgument where
// CheckTransport says no. The TLS files are to be checked before (common/certs/tls_check.h): gRPC
// waits for good ones and says nothing.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const Address& address, ChannelUse use,
                                                           const Transport& transport = {});

// Sets all options and adds `address` as listening port; `selected_port` receives the bound TCP
// port (0: could not bind) and must outlive BuildAndStart. With TLS every client must show a
// certificate that our authority signed. Errors and files as above.
absl::Status ConfigureServer(grpc::ServerBuilder& builder, const Address& address,
                             int* selected_port, const Transport& transport = {});

// Between absl::Status and grpc::Status: codes are the same numbers. A message travels as a header
// and is cut at 16 KiB with a note; the limit of headers is set to hold that on both sides.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace assay

#endif  // ASSAY_COMMON_NET_GRPC_OPTIONS_H_
