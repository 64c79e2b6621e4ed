#include "common/net/grpc_options.h"

#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/support/channel_arguments.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <string>

#include "common/log/log.h"
#include "common/net/address.h"
#include "common/status/status.h"

namespace assay {
namespace {

// gRPC's own threads may be in OpenSSL still when a program leaves; OpenSSL's clean-up at exit
// would take its locks and tables from under them. Decided by the first call of OpenSSL in a
// process, so before main; nothing reads this.
[[maybe_unused]] const int kNoCleanUpAtExit = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

// A status message travels as a percent-encoded header; the worst text grows threefold.
constexpr size_t kMaxStatusMessageBytes = 16 << 10;
constexpr int kMaxMetadataBytes = 64 << 10;

// Cut before `limit`, not inside a UTF-8 character.
std::string CutMessage(std::string message) {
  if (message.size() <= kMaxStatusMessageBytes) return message;
  size_t size = kMaxStatusMessageBytes;
  while (size > 0 && (static_cast<unsigned char>(message[size]) & 0xc0) == 0x80) --size;
  message.resize(size);
  return message + "\n[cut]";
}

int Milliseconds(std::chrono::milliseconds duration) { return static_cast<int>(duration.count()); }

// gRPC writes to standard error by itself, beside the one sentence that our programs say; what it
// has to tell goes to our log, for whom asks for it.
void TakeOverLog() {
  static const bool done = [] {
    gpr_set_log_function(
        [](gpr_log_func_args* arguments) { spdlog::debug("gRPC: {}", arguments->message); });
    return true;
  }();
  (void)done;
}

std::shared_ptr<grpc::experimental::CertificateProviderInterface> WatchFiles(
    const TlsFiles& files) {
  return std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.key, files.certificate, files.ca, static_cast<unsigned>(kTlsRefresh.count()));
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const Address& address,
                                                               const Transport& transport) {
  if (!transport.UsesTls(address)) return grpc::InsecureChannelCredentials();
  // The name is checked by default (HostNameCertificateVerifier).
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(WatchFiles(transport.tls));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> ServerCredentialsOf(const Address& address,
                                                             const Transport& transport) {
  if (!transport.UsesTls(address)) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(WatchFiles(transport.tls));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const Address& address, ChannelUse use,
                                                           const Transport& transport) {
  ASSAY_RETURN_IF_ERROR(CheckTransport(transport, address));
  TakeOverLog();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  // A channel of its own for each caller: sharing a connection would share its stream limit and die
  // with the other's.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // No proxy from the environment: the coordinator is on this machine or on the fleet's network.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (use == ChannelUse::kAgent) {
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kAgentKeepaliveInterval));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kAgentKeepaliveTimeout));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    // gRPC adds 20 % of jitter itself; the agent's own loop adds full jitter (backoff.h), and until
    // this has passed every try of that loop is answered with the failure before: both together
    // stay well under the 15 s in which a fleet has to be back.
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 500);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  } else {
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  }
  // By its name a pause between tries; what it does is to bound each of them.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, Milliseconds(kConnectLimit));
  return grpc::CreateCustomChannel(address.ToString(), ChannelCredentialsOf(address, transport),
                                   arguments);
}

absl::Status ConfigureServer(grpc::ServerBuilder& builder, const Address& address,
                             int* selected_port, const Transport& transport) {
  ASSAY_RETURN_IF_ERROR(CheckTransport(transport, address));
  TakeOverLog();
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  // Without this a second coordinator on the same port would take half of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(kServerLeastPingInterval));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A dead peer is noticed by our own heartbeat; the server's pings only end half-open streams.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kAgentKeepaliveInterval));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kAgentKeepaliveTimeout));
  builder.AddListeningPort(address.ToString(), ServerCredentialsOf(address, transport),
                           selected_port);
  return absl::OkStatus();
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), CutMessage(Message(status)));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::string_view(status.error_message()));
}

}  // namespace assay
